import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { GkeConfig } from "../../config.ts";

/**
 * A network of its own for the cluster, with ranges for pods and services (VPC-native), and a
 * way out for nodes that have no public address.
 */
export class GkeNetwork extends pulumi.ComponentResource {
  static readonly podRange = "pods";
  static readonly serviceRange = "services";
  readonly network: gcp.compute.Network;
  readonly subnetwork: gcp.compute.Subnetwork;
  /** Nodes cannot pull images before it is there. */
  readonly nat: gcp.compute.RouterNat;

  constructor(
    name: string,
    { config, project }: { readonly config: GkeConfig; readonly project: pulumi.Output<string> },
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("tiltyard:infra:GkeNetwork", name, {}, options);
    const { region, network: ranges } = config;
    const child = { parent: this };
    this.network = new gcp.compute.Network(name, { project, autoCreateSubnetworks: false }, child);
    this.subnetwork = new gcp.compute.Subnetwork(
      name,
      {
        project,
        network: this.network.id,
        region,
        ipCidrRange: ranges.cidr,
        privateIpGoogleAccess: true,
        secondaryIpRanges: [
          { rangeName: GkeNetwork.podRange, ipCidrRange: ranges.podCidr },
          { rangeName: GkeNetwork.serviceRange, ipCidrRange: ranges.serviceCidr },
        ],
        logConfig: { aggregationInterval: "INTERVAL_10_MIN", flowSampling: 0.1, metadata: "EXCLUDE_ALL_METADATA" },
      },
      child,
    );
    const router = new gcp.compute.Router(name, { project, network: this.network.id, region }, child);
    this.nat = new gcp.compute.RouterNat(
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
    this.registerOutputs();
  }
}
