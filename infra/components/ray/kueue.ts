import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { stringify } from "yaml";
import type { Cluster } from "../../cluster.ts";
import { placedOn } from "../../node-pools.ts";
import { type ChartValues, merged } from "../../settings/chart-values.ts";
import type { KueueSettings, QuotaSettings } from "../../settings/team-settings.ts";
import { charts } from "../../versions.ts";
import { namespaceNamed } from "../network-peers.ts";
import { amountsOf } from "./quota.ts";

/** The name of the queue in each namespace, which jobs refer to. */
export const queueName = "ray";

/** The label of namespaces with a queue. Kueue serves the namespaces of all stacks, one of which installs it. */
export const queueLabels = { "tiltyard.dev/queue": queueName } as const;

/** The port of Kueue's webhooks, which the API server calls. */
export const webhookPort = 9443;

const apiVersion = "kueue.x-k8s.io/v1beta2";

export interface KueueArgs {
  readonly cluster: Cluster;
  readonly kueue: KueueSettings;
  /** The additional values of the chart. */
  readonly values: ChartValues | undefined;
  readonly queues: readonly { readonly namespace: string; readonly quota: QuotaSettings }[];
  /** The priority class of the controller. */
  readonly priorityClass: string;
  /** The namespaces of the queues, the priority class, the operator, and other dependencies. */
  readonly before: readonly pulumi.Resource[];
}

/**
 * Kueue with a queue for each namespace. A job with a queue waits until enough of the quota is free. Kueue ignores jobs
 * without a queue.
 */
export class Kueue extends pulumi.ComponentResource {
  constructor(name: string, args: KueueArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:Kueue", name, {}, options);
    const { cluster, kueue, queues, before } = args;
    const inCluster = { parent: this, provider: cluster.kubernetes };
    const controller = kueue.source === "none" ? [] : [createController(name, kueue.version, args, inCluster)];
    const after = { ...inCluster, dependsOn: [...before, ...controller] };
    for (const queue of queues) createQueue(`${name}-${queue.namespace}`, queue, after);
    this.registerOutputs();
  }
}

function createController(
  name: string,
  version: string,
  { cluster, values, priorityClass, before }: KueueArgs,
  options: pulumi.CustomResourceOptions,
) {
  return new kubernetes.helm.v3.Release(
    name,
    {
      name: "kueue",
      chart: charts.kueue.chart,
      version,
      namespace: "kueue-system",
      createNamespace: true,
      atomic: true,
      timeout: 600,
      values: merged(
        {
          controllerManager: {
            ...placedOn(cluster.coreSelector),
            replicas: 2,
            podDisruptionBudget: { enabled: true, minAvailable: 1 },
            manager: { priorityClassName: priorityClass },
          },
          managerConfig: { controllerManagerConfigYaml: configuration },
        },
        values,
      ),
    },
    { ...options, dependsOn: [...before] },
  );
}

/**
 * The configuration of Kueue's manager for Ray in the namespaces with a queue. By default, Kueue's webhooks would decide on
 * every pod, Deployment and StatefulSet of the cluster, and block them while the manager is not available. The other
 * values are the defaults of the chart, which this text replaces as a whole.
 */
const configuration = stringify({
  apiVersion: "config.kueue.x-k8s.io/v1beta2",
  kind: "Configuration",
  health: { healthProbeBindAddress: ":8081" },
  metrics: { bindAddress: ":8443" },
  webhook: { port: webhookPort },
  leaderElection: { leaderElect: true, resourceName: "c1f6bfd2.kueue.x-k8s.io" },
  controller: {
    groupKindConcurrency: {
      "Workload.kueue.x-k8s.io": 5,
      "LocalQueue.kueue.x-k8s.io": 1,
      "ClusterQueue.kueue.x-k8s.io": 1,
      "ResourceFlavor.kueue.x-k8s.io": 1,
    },
  },
  clientConnection: { qps: 50, burst: 100 },
  managedJobsNamespaceSelector: { matchLabels: queueLabels },
  integrations: { frameworks: ["ray.io/rayjob", "ray.io/raycluster"] },
});

function createQueue(
  name: string,
  { namespace, quota }: KueueArgs["queues"][number],
  options: pulumi.CustomResourceOptions,
) {
  const amounts = amountsOf(quota);
  const create = (suffix: string, kind: string, metadata: object, spec: object) =>
    new kubernetes.apiextensions.CustomResource(`${name}-${suffix}`, { apiVersion, kind, metadata, spec }, options);
  // Pods choose their nodes themselves, so a queue needs only one flavor.
  const flavor = create("flavor", "ResourceFlavor", { name: `tiltyard-${namespace}` }, {});
  const whole = create(
    "cluster",
    "ClusterQueue",
    { name: `tiltyard-${namespace}` },
    {
      namespaceSelector: namespaceNamed(namespace),
      resourceGroups: [
        {
          coveredResources: Object.keys(amounts),
          flavors: [
            {
              name: flavor.metadata.name,
              resources: Object.entries(amounts).map(([resource, nominalQuota]) => ({ name: resource, nominalQuota })),
            },
          ],
        },
      ],
    },
  );
  create("local", "LocalQueue", { name: queueName, namespace }, { clusterQueue: whole.metadata.name });
}
