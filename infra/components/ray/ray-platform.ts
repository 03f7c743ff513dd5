import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { Cluster } from "../../cluster.ts";
import { priorityClasses, type StackConfig } from "../../config.ts";
import { KubeRayOperator } from "./kuberay-operator.ts";

export interface RayPlatformArgs {
  readonly config: StackConfig;
  readonly cluster: Cluster;
}

/**
 * A place for Ray clusters: the namespace, the service account of their pods with its role
 * (requirements.md 2.7) and its right to the bucket (5.1), and the operator that makes them.
 */
export class RayPlatform extends pulumi.ComponentResource {
  readonly namespace: kubernetes.core.v1.Namespace;
  readonly serviceAccount: kubernetes.core.v1.ServiceAccount;

  constructor(name: string, { config, cluster }: RayPlatformArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:RayPlatform", name, {}, options);
    const inCluster = { parent: this, provider: cluster.kubernetes };
    // When the stack goes, what is in the namespace goes first, then the nodes, then the network.
    this.namespace = createNamespace(name, config, { ...inCluster, dependsOn: [...cluster.nodes] });
    const inNamespace = { ...inCluster, dependsOn: [this.namespace] };
    this.serviceAccount = createServiceAccount(name, config, cluster, inNamespace);
    createClusterRole(name, config, this.serviceAccount, inNamespace);
    if (cluster.clients.length > 0) createClientRole(name, config, cluster, inNamespace);
    const priorities = createPriorities(name, config, inCluster);
    protectHeads(name, config, inNamespace);
    keepToNamespace(name, config, inNamespace);
    const before = [this.namespace, ...priorities];
    new KubeRayOperator(`${name}-operator`, { config, cluster, before }, { parent: this });
    this.registerOutputs();
  }
}

/**
 * Server-side apply takes over a namespace that is there. It may hold what is not the
 * stack's, so it stays when the stack goes, unless a setting says otherwise.
 */
function createNamespace(name: string, config: StackConfig, options: pulumi.CustomResourceOptions) {
  const ownsCluster = config.variant !== "existing";
  return new kubernetes.core.v1.Namespace(
    name,
    {
      metadata: {
        name: config.namespace,
        labels: {
          // Says what would be refused; what runs here besides the stack is not refused.
          "pod-security.kubernetes.io/warn": "restricted",
          ...(ownsCluster && { "pod-security.kubernetes.io/enforce": "baseline" }),
        },
      },
    },
    { ...options, retainOnDelete: !config.deleteNamespace && !ownsCluster },
  );
}

function createServiceAccount(
  name: string,
  config: StackConfig,
  cluster: Cluster,
  options: pulumi.CustomResourceOptions,
) {
  return new kubernetes.core.v1.ServiceAccount(
    name,
    {
      metadata: {
        name: config.serviceAccount,
        namespace: config.namespace,
        annotations: cluster.bucketIdentity("ray", config.serviceAccount),
      },
    },
    options,
  );
}

/** Exactly the rules and the names of requirements.md 2.7. */
function createClusterRole(
  name: string,
  config: StackConfig,
  serviceAccount: kubernetes.core.v1.ServiceAccount,
  options: pulumi.CustomResourceOptions,
): void {
  const role = new kubernetes.rbac.v1.ClusterRole(
    name,
    {
      metadata: { name: `${config.serviceAccount}-role` },
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
      metadata: { name: `${config.serviceAccount}-binding` },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role.metadata.name },
      subjects: [
        {
          kind: "ServiceAccount",
          name: serviceAccount.metadata.name,
          namespace: config.namespace,
        },
      ],
    },
    options,
  );
}

/** What a client does in the namespace: makes Ray clusters, watches them come up, and reaches their dashboards. */
function createClientRole(
  name: string,
  config: StackConfig,
  cluster: Cluster,
  options: pulumi.CustomResourceOptions,
): void {
  const metadata = { name: `${config.serviceAccount}-client`, namespace: config.namespace };
  const role = new kubernetes.rbac.v1.Role(
    `${name}-client`,
    {
      metadata,
      rules: [
        {
          apiGroups: ["ray.io"],
          resources: ["rayclusters"],
          verbs: ["get", "list", "watch", "create", "update", "patch", "delete"],
        },
        { apiGroups: [""], resources: ["pods", "pods/log", "services", "events"], verbs: ["get", "list", "watch"] },
        { apiGroups: [""], resources: ["pods/portforward"], verbs: ["get", "create"] },
        { apiGroups: [""], resources: ["serviceaccounts", "resourcequotas"], verbs: ["get", "list"] },
      ],
    },
    options,
  );
  new kubernetes.rbac.v1.RoleBinding(
    `${name}-client`,
    {
      metadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: role.metadata.name },
      subjects: cluster.clients.map((subject) => ({ ...subject, apiGroup: "rbac.authorization.k8s.io" })),
    },
    options,
  );
}

/** They belong to the whole cluster, on which other stacks may be, in other namespaces. */
function createPriorities(name: string, config: StackConfig, options: pulumi.CustomResourceOptions) {
  const { control, head } = priorityClasses(config);
  const classes = [
    ["control", control, 1_000_000, "The operator and the catalog: nothing works without them."],
    ["head", head, 100_000, "Ray heads: losing one ends its whole cluster."],
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
function protectHeads(name: string, config: StackConfig, options: pulumi.CustomResourceOptions): void {
  new kubernetes.policy.v1.PodDisruptionBudget(
    `${name}-heads`,
    {
      metadata: { name: "ray-heads", namespace: config.namespace },
      spec: { minAvailable: mostPods, selector: { matchLabels: { "ray.io/node-type": "head" } } },
    },
    options,
  );
}

/** The largest number that the field takes. */
const mostPods = 2 ** 31 - 1;

/** Whoever reaches a Ray head runs code on it: pods of other namespaces do not. */
function keepToNamespace(name: string, config: StackConfig, options: pulumi.CustomResourceOptions): void {
  new kubernetes.networking.v1.NetworkPolicy(
    `${name}-pods`,
    {
      metadata: { name: "ray-pods", namespace: config.namespace },
      spec: {
        podSelector: { matchExpressions: [{ key: "ray.io/cluster", operator: "Exists" }] },
        policyTypes: ["Ingress"],
        ingress: [{ from: [{ podSelector: {} }] }],
      },
    },
    options,
  );
}
