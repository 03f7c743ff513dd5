import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { platformDefaults } from "@tiltyard/protocol";
import type { Cluster } from "../../cluster.ts";
import { collectorNamespaces, type MonitoringSettings, noMonitoring } from "../../monitoring-settings.ts";
import type { OperatorSettings } from "../../settings.ts";
import { charts, versions } from "../../versions.ts";
import { createDashboard } from "../monitoring/grafana.ts";
import { createMonitor } from "../monitoring/monitors.ts";
import { rayClusterLabel, rayDashboard } from "../monitoring/ray-dashboard.ts";
import { createNamespace } from "../namespace.ts";
import { createClientRole } from "./client-role.ts";
import { KubeRayOperator } from "./kuberay-operator.ts";
import { createRayLogs, logsImage } from "./ray-logs.ts";
import { priorityClasses } from "./ray-names.ts";

export interface RayPlatformArgs {
  readonly cluster: Cluster;
  /** `lancedb` when absent, where Geneva looks. */
  readonly namespace?: string;
  /** What pods of Ray clusters run as; `geneva-service-account` when absent. */
  readonly serviceAccount?: string;
  /** KubeRay from its chart when absent. */
  readonly operator?: OperatorSettings;
  /** Namespaces whose pods may reach Ray's. Whoever reaches a head runs code on it. */
  readonly allowedNamespaces?: readonly string[];
  /** Whether the namespace goes with the stack on a cluster that is not its own. */
  readonly deleteNamespace?: boolean;
  /** Who reads Ray's metrics; nobody when absent. */
  readonly monitoring?: MonitoringSettings;
  /** Whether Ray's logs outlive a Ray cluster. */
  readonly rayLogs?: boolean;
}

const defaultOperator: OperatorSettings = {
  source: "helm",
  version: versions.kuberayOperator,
  ...charts.kuberayOperator,
};

/**
 * A place for Ray clusters: the namespace, the service account of their pods with its role
 * (requirements.md 2.7) and its right to the bucket (5.1), and the operator that makes them.
 */
export class RayPlatform extends pulumi.ComponentResource {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly headPriorityClass: string;
  /** Of the operator and of all else without which nothing works. */
  readonly controlPriorityClass: string;
  /** What clients need for a side car that keeps Ray's logs; undefined where they go with the pods. */
  readonly logs: { readonly image: pulumi.Input<string>; readonly configMap: string } | undefined;
  /** What has to be there before pods of a controller run. */
  readonly priorities: readonly pulumi.Resource[];

  constructor(name: string, args: RayPlatformArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:RayPlatform", name, {}, options);
    const { cluster, operator = defaultOperator, allowedNamespaces = [], deleteNamespace = false } = args;
    const { monitoring = noMonitoring } = args;
    this.namespace = args.namespace ?? platformDefaults.namespace;
    this.serviceAccount = args.serviceAccount ?? platformDefaults.serviceAccount;
    const { head, control } = priorityClasses(this.namespace);
    this.headPriorityClass = head;
    this.controlPriorityClass = control;

    const namespace = createNamespace(
      name,
      { cluster, namespace: this.namespace, enforce: "baseline", deleteNamespace },
      this,
    );
    const inCluster = { parent: this, provider: cluster.kubernetes };
    const inNamespace = { ...inCluster, dependsOn: [namespace] };
    createServiceAccount(name, cluster, this, inNamespace);
    createClusterRole(name, this, inNamespace);
    createClientRole(`${name}-client`, { cluster, ...namesOf(this) }, inNamespace);
    this.priorities = createPriorities(name, this, inCluster);
    protectHeads(name, this, inNamespace);
    const operatorsOwn = operator.source === "none" && operator.namespace !== undefined ? [operator.namespace] : [];
    keepToNamespaces(name, this, { all: [...operatorsOwn, ...allowedNamespaces], monitoring }, inNamespace);
    showMetrics(name, this, monitoring, inNamespace);
    if (args.rayLogs === true)
      this.logs = {
        image: cluster.services.cachedImage(logsImage),
        configMap: createRayLogs(`${name}-logs`, this.namespace, inNamespace),
      };
    const before = [namespace, ...this.priorities];
    new KubeRayOperator(`${name}-operator`, { cluster, namespace: this.namespace, operator, before }, { parent: this });
    this.registerOutputs();
  }
}

type Names = Pick<RayPlatform, "namespace" | "serviceAccount" | "headPriorityClass" | "controlPriorityClass">;

function namesOf({ namespace, serviceAccount, headPriorityClass }: Names) {
  return { namespace, serviceAccount, headPriorityClass };
}

function createServiceAccount(
  name: string,
  cluster: Cluster,
  { namespace, serviceAccount }: Names,
  options: pulumi.CustomResourceOptions,
): void {
  const { annotations } = cluster.services.createIdentity("ray", { namespace, name: serviceAccount });
  new kubernetes.core.v1.ServiceAccount(name, { metadata: { name: serviceAccount, namespace, annotations } }, options);
}

/** Exactly the rules and the names of requirements.md 2.7. */
function createClusterRole(
  name: string,
  { namespace, serviceAccount }: Names,
  options: pulumi.CustomResourceOptions,
): void {
  const role = new kubernetes.rbac.v1.ClusterRole(
    name,
    {
      metadata: { name: `${serviceAccount}-role` },
      rules: [
        { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] },
        { apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["get", "patch", "delete"] },
      ],
    },
    options,
  );
  new kubernetes.rbac.v1.ClusterRoleBinding(
    name,
    {
      metadata: { name: `${serviceAccount}-binding` },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role.metadata.name },
      subjects: [{ kind: "ServiceAccount", name: serviceAccount, namespace }],
    },
    options,
  );
}

/** They belong to the whole cluster, on which other stacks may be, in other namespaces. */
function createPriorities(
  name: string,
  { controlPriorityClass, headPriorityClass }: Names,
  options: pulumi.CustomResourceOptions,
) {
  const classes = [
    ["control", controlPriorityClass, 1_000_000, "The operator and the catalog: nothing works without them."],
    ["head", headPriorityClass, 100_000, "Ray heads: losing one ends its whole cluster."],
  ] as const;
  return classes.map(
    ([role, className, value, description]) =>
      new kubernetes.scheduling.v1.PriorityClass(
        `${name}-${role}`,
        { metadata: { name: className }, value, description },
        options,
      ),
  );
}

/**
 * A node with a Ray head on it is not drained while the head runs; workers may go, Ray starts their work again.
 * The budget asks for more heads than there can be: `maxUnavailable: 0` would be worked out from how many pods their
 * owner wants, which a RayCluster does not tell (it has no scale).
 */
function protectHeads(name: string, { namespace }: Names, options: pulumi.CustomResourceOptions): void {
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

/** Series of different clusters are told apart by the cluster's name. */
function showMetrics(
  name: string,
  { namespace }: Names,
  monitoring: MonitoringSettings,
  options: pulumi.CustomResourceOptions,
): void {
  const series = { selector: allRayPods, ports: metricsPorts, labels: { [rayClusterLabel]: "ray.io/cluster" } };
  createMonitor(`${name}-monitor`, { monitoring, namespace, monitorName: "ray", ...series }, options);
  createDashboard(`${name}-dashboard`, { monitoring, namespace, dashboard: rayDashboard }, options);
}

/** Whoever reaches a Ray head runs code on it: pods of namespaces that nobody named do not. Collectors read metrics alone. */
function keepToNamespaces(
  name: string,
  { namespace }: Names,
  { all, monitoring }: { readonly all: readonly string[]; readonly monitoring: MonitoringSettings },
  options: pulumi.CustomResourceOptions,
): void {
  const podsOf = (others: readonly string[]) =>
    others.map((other) => ({ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": other } } }));
  const collectors = podsOf(collectorNamespaces(monitoring));
  const ports = metricsPortNumbers.map((port) => ({ protocol: "TCP", port }));
  new kubernetes.networking.v1.NetworkPolicy(
    `${name}-pods`,
    {
      metadata: { name: "ray-pods", namespace },
      spec: {
        podSelector: allRayPods,
        policyTypes: ["Ingress"],
        ingress: [
          { from: [{ podSelector: {} }, ...podsOf(all)] },
          ...(collectors.length > 0 ? [{ from: collectors, ports }] : []),
        ],
      },
    },
    options,
  );
}
