import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { Cluster, ClusterSubject, PodIdentity } from "../../cluster.ts";
import { collectorNamespaces, type MonitoringSettings } from "../../settings/monitoring-settings.ts";
import { clientSuffix, type KueueSettings, type QuotaSettings } from "../../settings/team-settings.ts";
import { createMonitor } from "../monitoring/monitors.ts";
import { rayClusterLabel } from "../monitoring/ray-dashboard.ts";
import { createNamespace, type NamespaceArgs } from "../namespace.ts";
import { podsOf, tcp } from "../network-peers.ts";
import { createClientRole } from "./client-role.ts";
import { queueLabels } from "./kueue.ts";
import { createQuota } from "./quota.ts";
import { createRayLogs } from "./ray-logs.ts";
import { type Foundations, foundationsAnnotations, refuseAbandonedJobs, refuseMoveFromJobs } from "./running-jobs.ts";

/** The settings that all namespaces of Ray clusters of a platform share. */
export interface RayNamespaceSettings {
  readonly cluster: Cluster;
  /** The service account of the pods of Ray clusters in each of them. */
  readonly serviceAccount: string;
  readonly deleteNamespace: boolean;
  readonly monitoring: MonitoringSettings;
  readonly rayLogs: boolean;
  /** The queues of jobs; undefined without any. */
  readonly kueue?: KueueSettings | undefined;
}

export interface RayNamespaceArgs extends RayNamespaceSettings {
  readonly namespace: string;
  readonly enforce: NamespaceArgs["enforce"];
  /** The identity of its pods. */
  readonly identity: PodIdentity;
  /** The principals that may create Ray clusters there. */
  readonly clients: readonly ClusterSubject[];
  readonly quota: QuotaSettings | undefined;
  /** The additional peers whose pods may connect to those of Ray, as peers of a network policy. */
  readonly peers: readonly object[];
  /** The foundations of the platform, which its own namespace records; undefined for the namespace of a team. */
  readonly foundations?: Foundations;
}

/**
 * Creates a namespace for Ray clusters with their service account, the right to create them, their quota, and a network
 * policy for their peers.
 *
 * @returns The resource that must exist before objects are created in the namespace.
 */
export function createRayNamespace(
  name: string,
  args: RayNamespaceArgs,
  parent: pulumi.Resource,
): kubernetes.core.v1.Namespace {
  const { cluster, namespace, monitoring, kueue, foundations } = args;
  const created = createNamespace(
    name,
    // Jobs call what they need, such as indexes of packages and buckets.
    {
      ...args,
      denied: ["Ingress"],
      labels: kueue && queueLabels,
      ...(foundations && recordOf(name, foundations, cluster)),
    },
    parent,
  );
  const inNamespace = { parent, provider: cluster.kubernetes, dependsOn: [created] };
  createServiceAccount(name, args, inNamespace);
  createClientRole(`${name}${clientSuffix}`, args, inNamespace);
  createQuota(`${name}-quota`, args, inNamespace);
  protectHeads(name, namespace, inNamespace);
  restrictToPeers(name, args, inNamespace);
  showMetrics(name, { namespace, monitoring }, inNamespace);
  if (args.rayLogs) createRayLogs(`${name}-logs`, namespace, inNamespace);
  return created;
}

/** Returns the annotation with the foundations of a platform, and the checks of its changes. */
function recordOf(
  name: string,
  foundations: Foundations,
  { kubernetes: provider }: Cluster,
): Pick<NamespaceArgs, "annotations" | "hooks"> {
  return {
    annotations: foundationsAnnotations(foundations),
    hooks: {
      beforeCreate: [provider.beforeCreate(`${name}-moved`, refuseMoveFromJobs(foundations))],
      beforeUpdate: [provider.beforeUpdate(`${name}-changed`, refuseAbandonedJobs(foundations))],
    },
  };
}

function createServiceAccount(
  name: string,
  { namespace, serviceAccount, identity: { annotations } }: RayNamespaceArgs,
  options: pulumi.CustomResourceOptions,
): void {
  new kubernetes.core.v1.ServiceAccount(name, { metadata: { name: serviceAccount, namespace, annotations } }, options);
}

/**
 * Prevents a node with a running Ray head from being drained. Workers may be evicted, because Ray restarts their work.
 * The budget requires more heads than can exist: `maxUnavailable: 0` would be derived from the desired number of pods,
 * which a RayCluster does not expose (it has no scale subresource).
 */
function protectHeads(name: string, namespace: string, options: pulumi.CustomResourceOptions): void {
  new kubernetes.policy.v1.PodDisruptionBudget(
    `${name}-heads`,
    {
      metadata: { name: "ray-heads", namespace },
      spec: {
        minAvailable: mostPods,
        selector: { matchLabels: { "ray.io/node-type": "head" } },
        // A head that is not ready must not block the drain of its node.
        unhealthyPodEvictionPolicy: "AlwaysAllow",
      },
    },
    options,
  );
}

/** The maximum value of the field. */
const mostPods = 2 ** 31 - 1;

/**
 * The names of the ports with metrics. KubeRay declares the first one on each Ray container; the others exist only on
 * heads that declare them.
 */
const metricsPorts = ["metrics", "as-metrics", "dash-metrics"] as const;
const metricsPortNumbers = [8080, 44217, 44227];
const allRayPods = { matchExpressions: [{ key: "ray.io/cluster", operator: "Exists" }] };

/**
 * Admits only Ray's own pods of the namespace and the peers to Ray, because access to a head means code execution on
 * it. Policies cannot compare labels, so the heads of one namespace are separated only by their tokens. Collectors can
 * access only metrics.
 */
function restrictToPeers(
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

/** Creates the monitor of Ray's pods. The name of the cluster distinguishes the series of different clusters. */
function showMetrics(
  name: string,
  { namespace, monitoring }: Pick<RayNamespaceArgs, "namespace" | "monitoring">,
  options: pulumi.CustomResourceOptions,
): void {
  const series = { selector: allRayPods, ports: metricsPorts, labels: { [rayClusterLabel]: "ray.io/cluster" } };
  createMonitor(`${name}-monitor`, { monitoring, namespace, monitorName: "ray", ...series }, options);
}
