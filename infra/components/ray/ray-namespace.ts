import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { Cluster, ClusterSubject, PodIdentity } from "../../cluster.ts";
import { collectorNamespaces, type MonitoringSettings } from "../../monitoring-settings.ts";
import type { QuotaSettings } from "../../team-settings.ts";
import { createMonitor } from "../monitoring/monitors.ts";
import { rayClusterLabel } from "../monitoring/ray-dashboard.ts";
import { createNamespace } from "../namespace.ts";
import { podsOf, tcp } from "../network-peers.ts";
import { createClientRole } from "./client-role.ts";
import { createQuota } from "./quota.ts";
import { createRayLogs } from "./ray-logs.ts";

/** What all namespaces of Ray clusters of a platform have in common. */
export interface RayNamespaceSettings {
  readonly cluster: Cluster;
  /** What pods of Ray clusters run as, in each of them. */
  readonly serviceAccount: string;
  readonly deleteNamespace: boolean;
  readonly monitoring: MonitoringSettings;
  readonly rayLogs: boolean;
}

export interface RayNamespaceArgs extends RayNamespaceSettings {
  readonly namespace: string;
  /** Of its pods. */
  readonly identity: PodIdentity;
  /** Principals that may make Ray clusters there. */
  readonly clients: readonly ClusterSubject[];
  readonly quota: QuotaSettings | undefined;
  /** Whose pods may reach those of Ray, besides its own: peers of a network policy. */
  readonly peers: readonly object[];
}

/**
 * A namespace in which Ray clusters can be made: their service account, the right to make them, their quota, and a
 * network policy for their peers.
 *
 * @returns What has to be there before something is put into it.
 */
export function createRayNamespace(
  name: string,
  args: RayNamespaceArgs,
  parent: pulumi.Resource,
): kubernetes.core.v1.Namespace {
  const { cluster, namespace, monitoring } = args;
  const made = createNamespace(name, { ...args, enforce: "baseline" }, parent);
  const inNamespace = { parent, provider: cluster.kubernetes, dependsOn: [made] };
  createServiceAccount(name, args, inNamespace);
  createClientRole(`${name}-client`, args, inNamespace);
  createQuota(`${name}-quota`, args, inNamespace);
  protectHeads(name, namespace, inNamespace);
  keepToPeers(name, args, inNamespace);
  showMetrics(name, { namespace, monitoring }, inNamespace);
  if (args.rayLogs) createRayLogs(`${name}-logs`, namespace, inNamespace);
  return made;
}

function createServiceAccount(
  name: string,
  { namespace, serviceAccount, identity: { annotations } }: RayNamespaceArgs,
  options: pulumi.CustomResourceOptions,
): void {
  new kubernetes.core.v1.ServiceAccount(name, { metadata: { name: serviceAccount, namespace, annotations } }, options);
}

/**
 * A node with a Ray head on it is not drained while the head runs; workers may go, Ray starts their work again.
 * The budget asks for more heads than there can be: `maxUnavailable: 0` would be worked out from how many pods their
 * owner wants, which a RayCluster does not tell (it has no scale).
 */
function protectHeads(name: string, namespace: string, options: pulumi.CustomResourceOptions): void {
  new kubernetes.policy.v1.PodDisruptionBudget(
    `${name}-heads`,
    {
      metadata: { name: "ray-heads", namespace },
      spec: { minAvailable: mostPods, selector: { matchLabels: { "ray.io/node-type": "head" } } },
    },
    options,
  );
}

/** The largest number that the field takes. */
const mostPods = 2 ** 31 - 1;

/** KubeRay gives each Ray container a port of this name. The others are there on heads that declare them. */
const metricsPorts = ["metrics", "as-metrics", "dash-metrics"] as const;
const metricsPortNumbers = [8080, 44217, 44227];
const allRayPods = { matchExpressions: [{ key: "ray.io/cluster", operator: "Exists" }] };

/**
 * Admits Ray's own pods of the namespace and the peers to Ray: access to a head is code execution on it. Policies cannot
 * compare labels, so that heads of one namespace are kept apart by their tokens. Collectors read metrics alone.
 */
function keepToPeers(
  name: string,
  { namespace, peers, monitoring }: RayNamespaceArgs,
  options: pulumi.CustomResourceOptions,
): void {
  const collectors = collectorNamespaces(monitoring).map((collector) => podsOf(collector));
  const ports = metricsPortNumbers.map(tcp);
  new kubernetes.networking.v1.NetworkPolicy(
    `${name}-pods`,
    {
      metadata: { name: "ray-pods", namespace },
      spec: {
        podSelector: allRayPods,
        policyTypes: ["Ingress"],
        ingress: [
          { from: [{ podSelector: allRayPods }, ...peers] },
          ...(collectors.length > 0 ? [{ from: collectors, ports }] : []),
        ],
      },
    },
    options,
  );
}

/** Series of different clusters are told apart by the cluster's name. */
function showMetrics(
  name: string,
  { namespace, monitoring }: Pick<RayNamespaceArgs, "namespace" | "monitoring">,
  options: pulumi.CustomResourceOptions,
): void {
  const series = { selector: allRayPods, ports: metricsPorts, labels: { [rayClusterLabel]: "ray.io/cluster" } };
  createMonitor(`${name}-monitor`, { monitoring, namespace, monitorName: "ray", ...series }, options);
}
