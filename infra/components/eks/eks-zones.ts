import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { EksConfig } from "../../config.ts";
import type { NodePool } from "../../node-pools.ts";
import { privateSubnetTags } from "./subnet-tags.ts";

/** The default number of zones of a network. */
const zoneCount = 3;

/** The ids of zones in which EKS places no control plane. Their names differ between accounts. */
const withoutControlPlane = ["use1-az3", "usw1-az2", "cac1-az3"];

export type AdoptedSubnets = readonly { readonly id: string; readonly zone: string }[];

export interface EksZones {
  /** The zones of the network. */
  readonly network: readonly string[];
  /**
   * The zones of each pool, by the name of the pool: those of the network that offer its machine. An optional pool
   * without such a zone has none.
   */
  readonly pools: ReadonlyMap<string, readonly string[]>;
  /** The private subnets of an adopted network. */
  readonly subnets: AdoptedSubnets;
  /** The addresses of an adopted network. */
  readonly cidrs: readonly string[];
}

/**
 * Looks up the zones of the stack before any of its resources is created.
 *
 * @throws RunError if a pool has no zone.
 */
export async function findEksZones(config: EksConfig): Promise<EksZones> {
  const { network, subnets, cidrs } = config.network.isAdopted
    ? await zonesOfVpc(config.network.vpc)
    : { network: await zonesOfOwnVpc(config, config.network.zones), subnets: [], cidrs: [] };
  const pools = await Promise.all(
    config.nodePools.map(async (pool) => [pool.name, await zonesOfPool(pool, network, config.region)] as const),
  );
  return { network, pools: new Map(pools), subnets, cidrs };
}

async function zonesOfVpc({
  id,
  privateSubnetIds,
}: {
  readonly id: string;
  readonly privateSubnetIds: readonly string[];
}) {
  const [cidrs, subnets] = await Promise.all([
    findRanges(id),
    Promise.all(privateSubnetIds.map((subnetId) => aws.ec2.getSubnet({ id: subnetId }))),
  ]);
  for (const { id: subnetId, vpcId, availabilityZone, availabilityZoneId } of subnets) {
    if (vpcId !== id)
      throw new pulumi.RunError(`network.vpc.privateSubnetIds: ${subnetId} is in ${vpcId}, not in ${id}`);
    if (withoutControlPlane.includes(availabilityZoneId))
      throw new pulumi.RunError(
        `network.vpc.privateSubnetIds: ${subnetId} is in ${availabilityZone}, where EKS cannot be`,
      );
  }
  const network = [...new Set(subnets.map(({ availabilityZone }) => availabilityZone))];
  if (network.length < 2)
    throw new pulumi.RunError(
      `network.vpc.privateSubnetIds: are all in ${network.join()}; EKS requires at least two zones`,
    );
  return {
    network,
    subnets: subnets.map(({ id: subnetId, availabilityZone }) => ({ id: subnetId, zone: availabilityZone })),
    cidrs,
  };
}

/** Looks up the ranges of addresses of an existing network, any of which may contain its load balancers. */
export async function findRanges(vpcId: string): Promise<readonly string[]> {
  const { cidrBlockAssociations } = await aws.ec2.getVpc({ id: vpcId });
  return cidrBlockAssociations.map(({ cidrBlock }) => cidrBlock);
}

/**
 * Returns the zones of the stack's network. Subnets that exist keep their zones, whatever zones AWS lists by now: a subnet
 * in another zone would be a new one, with new nodes.
 */
async function zonesOfOwnVpc(config: EksConfig, requested: readonly string[] | undefined): Promise<readonly string[]> {
  const { region } = config;
  const [{ names }, present] = await Promise.all([
    aws.getAvailabilityZones({
      region,
      state: "available",
      filters: [{ name: "opt-in-status", values: ["opt-in-not-required"] }],
      excludeZoneIds: withoutControlPlane,
    }),
    zonesOfSubnets(config),
  ]);
  const further = names.filter((zone) => !present.includes(zone));
  const count = Math.max(zoneCount, present.length);
  const network = requested ?? Array.from({ length: count }, (_, index) => present[index] ?? further.shift());
  const possible = [...names, ...present];
  const impossible = network.filter((zone) => zone !== undefined && !possible.includes(zone));
  if (impossible.length === 0) return network.filter((zone) => zone !== undefined);
  throw new pulumi.RunError(`network.zones: EKS cannot be in ${impossible.join(", ")}, but in ${names.join(", ")}`);
}

/** Returns the zones of the stack's private subnets by their number. One that an interrupted `up` did not create has none. */
async function zonesOfSubnets({ clusterName, region }: EksConfig): Promise<readonly (string | undefined)[]> {
  const { ids } = await aws.ec2.getSubnets({ region, tags: privateSubnetTags(clusterName) });
  const zones: (string | undefined)[] = [];
  for (const { tags, availabilityZone } of await Promise.all(ids.map((id) => aws.ec2.getSubnet({ region, id })))) {
    const [, number] = /-private-(\d+)$/.exec(tags.Name ?? "") ?? [];
    if (number !== undefined) zones[Number(number)] = availabilityZone;
  }
  return Array.from(zones);
}

async function zonesOfPool(pool: NodePool, network: readonly string[], region: string): Promise<readonly string[]> {
  const { name, machineTypes, zones = network } = pool;
  const offerings = await Promise.all(
    machineTypes.map((machineType) =>
      aws.ec2.getInstanceTypeOfferings({
        region,
        locationType: "availability-zone",
        filters: [{ name: "instance-type", values: [machineType] }],
      }),
    ),
  );
  const [first, ...others] = offerings.map(({ locations }) => locations);
  const locations = (first ?? []).filter((zone) => others.every((each) => each.includes(zone)));
  const outside = zones.filter((zone) => !network.includes(zone));
  if (outside.length > 0)
    throw new pulumi.RunError(
      `nodePools: ${name} cannot be in ${outside.join(", ")}: the zones of the network are ${network.join(", ")}`,
    );
  const offering = zones.filter((zone) => locations.includes(zone));
  if (pool.optional && offering.length === 0) return [];
  const isWhole = pool.zones === undefined ? offering.length > 0 : offering.length === zones.length;
  if (!isWhole)
    throw new pulumi.RunError(
      `nodePools: ${name} is to be in ${zones.join(", ")}, but ${machineTypes.join(", ")} is offered in ` +
        `${locations.join(", ") || "no zone"} of ${region}`,
    );
  return offering;
}
