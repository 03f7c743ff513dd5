import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { StackConfig } from "../../config.ts";

const zoneCount = 3;

/**
 * A network of three zones for the cluster: private subnets for nodes, public ones for load
 * balancers and the gateways out, and a way to S3 that costs nothing.
 */
export class Vpc extends pulumi.ComponentResource {
  readonly id: pulumi.Output<string>;
  readonly publicSubnetIds: readonly pulumi.Output<string>[];
  readonly privateSubnetIds: readonly pulumi.Output<string>[];
  /** Nodes cannot join before they have a way out. */
  readonly routes: readonly pulumi.Resource[];

  constructor(name: string, config: StackConfig, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:Vpc", name, {}, options);
    const child = { parent: this };
    const { clusterName, network } = config;
    const vpc = new aws.ec2.Vpc(
      name,
      { cidrBlock: network.cidr, enableDnsHostnames: true, enableDnsSupport: true, tags: { Name: clusterName } },
      child,
    );
    const zones = aws.getAvailabilityZonesOutput(
      { state: "available", filters: [{ name: "opt-in-status", values: ["opt-in-not-required"] }] },
      child,
    );
    const internet = new aws.ec2.InternetGateway(name, { vpcId: vpc.id, tags: { Name: clusterName } }, child);
    const [publicRanges, privateRanges] = subnetRanges(network.cidr);
    const zoneOf = (index: number) => zones.names.apply((names) => names[index % names.length] ?? "");

    const subnet = (kind: "public" | "private", index: number, cidrBlock: string) =>
      new aws.ec2.Subnet(
        `${name}-${kind}-${index}`,
        {
          vpcId: vpc.id,
          cidrBlock,
          availabilityZone: zoneOf(index),
          tags: {
            Name: `${clusterName}-${kind}-${index}`,
            [`kubernetes.io/cluster/${clusterName}`]: "shared",
            // By these the load balancer controller finds where to put what.
            [kind === "public" ? "kubernetes.io/role/elb" : "kubernetes.io/role/internal-elb"]: "1",
          },
        },
        child,
      );
    const publicSubnets = publicRanges.map((range, index) => subnet("public", index, range));
    const privateSubnets = privateRanges.map((range, index) => subnet("private", index, range));

    const publicTable = new aws.ec2.RouteTable(
      `${name}-public`,
      { vpcId: vpc.id, tags: { Name: `${clusterName}-public` } },
      child,
    );
    const toInternet = new aws.ec2.Route(
      `${name}-public`,
      { routeTableId: publicTable.id, destinationCidrBlock: "0.0.0.0/0", gatewayId: internet.id },
      child,
    );
    const gateways = publicSubnets
      .slice(0, network.natGateways === "single" ? 1 : zoneCount)
      .map((each, index) => createNat(this, `${name}-nat-${index}`, each, clusterName, toInternet));
    const privateTables = privateSubnets.map(
      (_, index) =>
        new aws.ec2.RouteTable(
          `${name}-private-${index}`,
          { vpcId: vpc.id, tags: { Name: `${clusterName}-private-${index}` } },
          child,
        ),
    );
    const routesOut = privateTables.flatMap((table, index) => {
      const gateway = gateways[index % gateways.length];
      if (gateway === undefined) return [];
      const args = { routeTableId: table.id, destinationCidrBlock: "0.0.0.0/0", natGatewayId: gateway.id };
      return [new aws.ec2.Route(`${name}-private-${index}`, args, child)];
    });
    const associate = (
      kind: string,
      subnets: readonly aws.ec2.Subnet[],
      tableOf: (index: number) => aws.ec2.RouteTable,
    ) =>
      subnets.map(
        (each, index) =>
          new aws.ec2.RouteTableAssociation(
            `${name}-${kind}-${index}`,
            { subnetId: each.id, routeTableId: tableOf(index).id },
            child,
          ),
      );
    const associations = [
      ...associate("public", publicSubnets, () => publicTable),
      ...associate("private", privateSubnets, (index) => privateTables[index] ?? publicTable),
    ];
    new aws.ec2.VpcEndpoint(
      `${name}-s3`,
      {
        vpcId: vpc.id,
        vpcEndpointType: "Gateway",
        serviceName: `com.amazonaws.${config.region}.s3`,
        routeTableIds: privateTables.map((table) => table.id),
        tags: { Name: `${clusterName}-s3` },
      },
      child,
    );

    this.id = vpc.id;
    this.publicSubnetIds = publicSubnets.map((each) => each.id);
    this.privateSubnetIds = privateSubnets.map((each) => each.id);
    this.routes = [toInternet, ...routesOut, ...associations];
    this.registerOutputs();
  }
}

function createNat(
  parent: pulumi.Resource,
  name: string,
  subnet: aws.ec2.Subnet,
  clusterName: string,
  toInternet: pulumi.Resource,
): aws.ec2.NatGateway {
  const address = new aws.ec2.Eip(name, { domain: "vpc", tags: { Name: clusterName } }, { parent });
  return new aws.ec2.NatGateway(
    name,
    { allocationId: address.id, subnetId: subnet.id, tags: { Name: clusterName } },
    { parent, dependsOn: [toInternet] },
  );
}

/**
 * Cuts a range into sixteenths: the private subnets, whose addresses pods have too, get four
 * of them each, the public ones one each.
 *
 * @returns The ranges of the public subnets, and of the private ones.
 */
export function subnetRanges(range: string): [string[], string[]] {
  const [address = "", length = "16"] = range.split("/");
  const base = address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
  const sixteenth = 2 ** (32 - Number(length) - 4);
  const at = (index: number, bits: number) => {
    const start = base + index * sixteenth;
    const octets = [24, 16, 8, 0].map((shift) => Math.floor(start / 2 ** shift) % 256);
    return `${octets.join(".")}/${Number(length) + bits}`;
  };
  const zones = Array.from({ length: zoneCount }, (_, zone) => zone);
  return [zones.map((zone) => at(12 + zone, 4)), zones.map((zone) => at(4 * zone, 2))];
}
