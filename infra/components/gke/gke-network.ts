import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import { catalogPort } from "@tiltyard/platform";
import type { GkeConfig } from "../../config.ts";
import { webhookPort } from "../ray/kueue.ts";

/** The network of a cluster, which the stack creates or adopts. */
export interface GkeNetwork {
  /** The ids of the network and the subnetwork. */
  readonly network: pulumi.Input<string>;
  readonly subnetwork: pulumi.Input<string>;
  /** The names of the secondary ranges. */
  readonly podRange: string;
  readonly serviceRange: string;
  /** The NAT for nodes without a public address, without which they cannot pull images, and the firewall of webhooks. */
  readonly needs: readonly pulumi.Resource[];
}

export interface OwnGkeNetworkArgs {
  readonly config: GkeConfig;
  readonly ranges: Readonly<Record<"cidr" | "podCidr" | "serviceCidr" | "proxyCidr", string>>;
  readonly project: pulumi.Output<string>;
}

/** A network for the cluster with ranges for pods and services (VPC-native), and a NAT for nodes without a public address. */
export class OwnGkeNetwork extends pulumi.ComponentResource implements GkeNetwork {
  readonly network: pulumi.Output<string>;
  readonly subnetwork: pulumi.Output<string>;
  readonly podRange = "pods";
  readonly serviceRange = "services";
  readonly needs: readonly pulumi.Resource[];

  constructor(name: string, args: OwnGkeNetworkArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:OwnGkeNetwork", name, {}, options);
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
        // By default, a node has 64 ports for each destination, which a worker that reads many objects exhausts.
        enableDynamicPortAllocation: true,
        minPortsPerVm: 64,
        maxPortsPerVm: 8192,
        enableEndpointIndependentMapping: false,
        logConfig: { enable: true, filter: "ERRORS_ONLY" },
      },
      child,
    );
    this.needs = [nat, ...(config.kueue?.source === "helm" ? [this.#admitWebhooks(name, args)] : [])];
    if (hasProxies(config)) this.#createProxySubnet(name, args);
    this.registerOutputs();
  }

  /** Lets the API server call Kueue. By default, GKE admits it to the ports 443 and 10250 of nodes alone. */
  #admitWebhooks(name: string, { config, project }: OwnGkeNetworkArgs): pulumi.Resource {
    return new gcp.compute.Firewall(
      `${name}-webhooks`,
      {
        project,
        network: this.network,
        direction: "INGRESS",
        sourceRanges: [config.network.controlPlaneCidr],
        allows: [{ protocol: "tcp", ports: [String(webhookPort)] }],
      },
      { parent: this },
    );
  }

  /** Creates the subnet of Google's proxies, without which no internal load balancer exists, and admits them to pods. */
  #createProxySubnet(name: string, { config: { region }, ranges, project }: OwnGkeNetworkArgs): void {
    const subnet = new gcp.compute.Subnetwork(
      `${name}-proxies`,
      {
        project,
        network: this.network,
        region,
        ipCidrRange: ranges.proxyCidr,
        purpose: "REGIONAL_MANAGED_PROXY",
        role: "ACTIVE",
      },
      { parent: this },
    );
    new gcp.compute.Firewall(
      `${name}-proxies`,
      {
        project,
        network: this.network,
        direction: "INGRESS",
        sourceRanges: [subnet.ipCidrRange],
        allows: [{ protocol: "tcp", ports: [String(catalogPort)] }],
      },
      { parent: this },
    );
  }
}

/** Reports whether the catalog may be behind a load balancer whose proxies are in the network. */
export function hasProxies({ catalog }: Pick<GkeConfig, "catalog">): boolean {
  return catalog.gateway !== undefined || catalog.ingress?.className === "gce-internal";
}
