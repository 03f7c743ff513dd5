import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { EksConfig } from "../../config.ts";
import type { EksNetwork } from "./eks-network.ts";
import { subnetRanges } from "./subnet-ranges.ts";
import { privateSubnetTags, publicSubnetTags } from "./subnet-tags.ts";

interface Zone {
  readonly name: string;
  readonly public: aws.ec2.Subnet;
  readonly private: aws.ec2.Subnet;
}

export interface VpcArgs {
  readonly config: EksConfig;
  readonly network: { readonly cidr: string; readonly natGateways: "single" | "perZone" };
  readonly zones: readonly string[];
}

/**
 * A network for the cluster. Each zone has a private subnet for nodes and a public one for load balancers and NAT
 * gateways. The traffic to S3 uses a gateway endpoint, which is free.
 */
export class Vpc extends pulumi.ComponentResource implements EksNetwork {
  readonly id: pulumi.Output<string>;
  readonly publicSubnetIds: readonly pulumi.Output<string>[];
  readonly privateSubnetIds: readonly pulumi.Output<string>[];
  /** The routes to the internet, without which nodes cannot join. */
  readonly routes: readonly pulumi.Resource[];
  readonly #name: string;
  readonly #config: EksConfig;
  readonly #network: VpcArgs["network"];
  readonly #zones: readonly Zone[];

  constructor(name: string, { config, network, zones }: VpcArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:Vpc", name, {}, options);
    this.#name = name;
    this.#config = config;
    this.#network = network;
    this.id = this.#createNetwork();
    this.#zones = this.#createSubnets(zones);
    const internetRoute = this.#createInternetRoute();
    const { tables, routes } = this.#createNatRoutes(internetRoute);
    this.#createS3Endpoint(tables);
    this.publicSubnetIds = this.#zones.map((zone) => zone.public.id);
    this.privateSubnetIds = this.#zones.map((zone) => zone.private.id);
    this.routes = [internetRoute, ...routes];
    this.registerOutputs();
  }

  /** Returns the private subnets in these zones. */
  privateSubnetsIn(zones: readonly string[]): readonly pulumi.Output<string>[] {
    return this.#zones.filter(({ name }) => zones.includes(name)).map((zone) => zone.private.id);
  }

  #createNetwork(): pulumi.Output<string> {
    const { cidr } = this.#network;
    return new aws.ec2.Vpc(
      this.#name,
      { cidrBlock: cidr, enableDnsHostnames: true, enableDnsSupport: true, tags: this.#tags() },
      { parent: this },
    ).id;
  }

  #createSubnets(zones: readonly string[]): Zone[] {
    const [publicRanges, privateRanges] = subnetRanges(this.#network.cidr, zones.length);
    return zones.map((name, index) => ({
      name,
      public: this.#createSubnet(`public-${index}`, name, publicRanges[index] ?? "", publicSubnetTags),
      private: this.#createSubnet(`private-${index}`, name, privateRanges[index] ?? "", privateSubnetTags),
    }));
  }

  #createSubnet(suffix: string, zone: string, cidrBlock: string, tagsOf: typeof publicSubnetTags): aws.ec2.Subnet {
    return new aws.ec2.Subnet(
      `${this.#name}-${suffix}`,
      {
        vpcId: this.id,
        cidrBlock,
        availabilityZone: zone,
        tags: { ...this.#tags(suffix), ...tagsOf(this.#config.clusterName) },
      },
      { parent: this },
    );
  }

  #createInternetRoute(): aws.ec2.Route {
    const internet = new aws.ec2.InternetGateway(this.#name, { vpcId: this.id, tags: this.#tags() }, { parent: this });
    const table = this.#createTable("public");
    for (const [index, zone] of this.#zones.entries()) this.#associate(`public-${index}`, zone.public, table);
    return new aws.ec2.Route(
      `${this.#name}-public`,
      { routeTableId: table.id, destinationCidrBlock: "0.0.0.0/0", gatewayId: internet.id },
      { parent: this },
    );
  }

  #createNatRoutes(internetRoute: pulumi.Resource) {
    const gateways = (this.#network.natGateways === "single" ? this.#zones.slice(0, 1) : this.#zones).map(
      (zone, index) => this.#createNat(`nat-${index}`, zone.public, internetRoute),
    );
    const tables = this.#zones.map((_, index) => this.#createTable(`private-${index}`));
    const routes = this.#zones.flatMap((zone, index) => {
      const [table, gateway] = [tables[index], gateways[index % gateways.length]];
      if (table === undefined || gateway === undefined) return [];
      const args = { routeTableId: table.id, destinationCidrBlock: "0.0.0.0/0", natGatewayId: gateway.id };
      return [
        new aws.ec2.Route(`${this.#name}-private-${index}`, args, { parent: this }),
        this.#associate(`private-${index}`, zone.private, table),
      ];
    });
    return { tables, routes };
  }

  #createNat(suffix: string, subnet: aws.ec2.Subnet, internetRoute: pulumi.Resource): aws.ec2.NatGateway {
    const name = `${this.#name}-${suffix}`;
    const address = new aws.ec2.Eip(name, { domain: "vpc", tags: this.#tags() }, { parent: this });
    return new aws.ec2.NatGateway(
      name,
      { allocationId: address.id, subnetId: subnet.id, tags: this.#tags() },
      { parent: this, dependsOn: [internetRoute] },
    );
  }

  #createS3Endpoint(tables: readonly aws.ec2.RouteTable[]): void {
    new aws.ec2.VpcEndpoint(
      `${this.#name}-s3`,
      {
        vpcId: this.id,
        vpcEndpointType: "Gateway",
        serviceName: `com.amazonaws.${this.#config.region}.s3`,
        routeTableIds: tables.map((table) => table.id),
        tags: this.#tags("s3"),
      },
      { parent: this },
    );
  }

  #createTable(suffix: string): aws.ec2.RouteTable {
    return new aws.ec2.RouteTable(
      `${this.#name}-${suffix}`,
      { vpcId: this.id, tags: this.#tags(suffix) },
      { parent: this },
    );
  }

  #associate(suffix: string, subnet: aws.ec2.Subnet, table: aws.ec2.RouteTable): aws.ec2.RouteTableAssociation {
    return new aws.ec2.RouteTableAssociation(
      `${this.#name}-${suffix}`,
      { subnetId: subnet.id, routeTableId: table.id },
      { parent: this },
    );
  }

  #tags(suffix?: string): Record<string, string> {
    const { clusterName } = this.#config;
    return { Name: suffix === undefined ? clusterName : `${clusterName}-${suffix}` };
  }
}
