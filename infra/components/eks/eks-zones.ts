import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { EksConfig } from "../../config.ts";
import type { NodePool } from "../../node-pools.ts";

/** How many zones a network has that names none. */
const zoneCount = 3;

/** Zones in which EKS puts no control plane, by their ids: accounts have different names for them. */
const withoutControlPlane = ["use1-az3", "usw1-az2", "cac1-az3"];

export interface EksZones {
  /** Of the network. */
  readonly network: readonly string[];
  /** Of each pool, by its name: those of the network that offer its machine. */
  readonly pools: ReadonlyMap<string, readonly string[]>;
}

/**
 * Looks up where the stack can be, before anything of it is made.
 *
 * @throws RunError when a pool has no zone.
 */
export async function findEksZones({ region, nodePools, network: asked }: EksConfig): Promise<EksZones> {
  const { names } = await aws.getAvailabilityZones({
    region,
    state: "available",
    filters: [{ name: "opt-in-status", values: ["opt-in-not-required"] }],
    excludeZoneIds: withoutControlPlane,
  });
  const network = asked.zones ?? names.slice(0, zoneCount);
  const impossible = network.filter((zone) => !names.includes(zone));
  if (impossible.length > 0)
    throw new pulumi.RunError(`network.zones: EKS cannot be in ${impossible.join(", ")}, but in ${names.join(", ")}`);
  const pools = await Promise.all(
    nodePools.map(async (pool) => [pool.name, await zonesOfPool(pool, network, region)] as const),
  );
  return { network, pools: new Map(pools) };
}

async function zonesOfPool(pool: NodePool, network: readonly string[], region: string): Promise<readonly string[]> {
  const { name, machineType, zones = network } = pool;
  const { locations } = await aws.ec2.getInstanceTypeOfferings({
    region,
    locationType: "availability-zone",
    filters: [{ name: "instance-type", values: [machineType] }],
  });
  const outside = zones.filter((zone) => !network.includes(zone));
  if (outside.length > 0)
    throw new pulumi.RunError(
      `nodePools: ${name} cannot be in ${outside.join(", ")}: network.zones are ${network.join(", ")}`,
    );
  const offering = zones.filter((zone) => locations.includes(zone));
  const isWhole = pool.zones === undefined ? offering.length > 0 : offering.length === zones.length;
  if (!isWhole)
    throw new pulumi.RunError(
      `nodePools: ${name} is to be in ${zones.join(", ")}, but ${machineType} is offered in ` +
        `${locations.join(", ") || "no zone"} of ${region}`,
    );
  return offering;
}
