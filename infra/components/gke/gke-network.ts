import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { GkeConfig } from "../../config.ts";

/** The network of a cluster, which the stack creates or adopts. */
export interface GkeNetwork {
  /** The ids of the network and the subnetwork. */
  readonly network: pulumi.Input<string>;
  readonly subnetwork: pulumi.Input<string>;
  /** The names of the secondary ranges. */
  readonly podRange: string;
  readonly serviceRange: string;
  /** The NAT for nodes without a public address, without which they cannot pull images. */
  readonly wayOut: readonly pulumi.Resource[];
}

export interface MadeNetworkArgs {
  readonly config: GkeConfig;
  readonly ranges: { readonly cidr: string; readonly podCidr: string; readonly serviceCidr: string };
  readonly project: pulumi.Output<string>;
}

/** A network for the cluster with ranges for pods and services (VPC-native), and a NAT for nodes without a public address. */
export class MadeNetwork extends pulumi.ComponentResource implements GkeNetwork {
  readonly network: pulumi.Output<string>;
  readonly subnetwork: pulumi.Output<string>;
  readonly podRange = "pods";
  readonly serviceRange = "services";
  readonly wayOut: readonly pulumi.Resource[];

  constructor(name: string, args: MadeNetworkArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:GkeNetwork", name, {}, options);
    const { config, ranges, project } = args;
    const { region } = config;
    const child = { parent: this };
    this.network = new gcp.compute.Network(name, { project, autoCreateSubnetworks: false }, child).id;
    this.subnetwork = new gcp.compute.Subnetwork(
      name,
      {
        project,
        network: this.network,
        region,
        ipCidrRange: ranges.cidr,
        privateIpGoogleAccess: true,
        secondaryIpRanges: [
          { rangeName: this.podRange, ipCidrRange: ranges.podCidr },
          { rangeName: this.serviceRange, ipCidrRange: ranges.serviceCidr },
        ],
        logConfig: { aggregationInterval: "INTERVAL_10_MIN", flowSampling: 0.1, metadata: "EXCLUDE_ALL_METADATA" },
      },
      child,
    ).id;
    const router = new gcp.compute.Router(name, { project, network: this.network, region }, child);
    const nat = new gcp.compute.RouterNat(
      name,
      {
        project,
        router: router.name,
        region,
        natIpAllocateOption: "AUTO_ONLY",
        sourceSubnetworkIpRangesToNat: "ALL_SUBNETWORKS_ALL_IP_RANGES",
        logConfig: { enable: true, filter: "ERRORS_ONLY" },
      },
      child,
    );
    this.wayOut = [nat];
    this.registerOutputs();
  }
}
