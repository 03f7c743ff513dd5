import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { platformDefaults } from "@tiltyard/protocol";
import type { ChartValuesOf } from "../../chart-values.ts";
import type { Cluster, ClusterSubject } from "../../cluster.ts";
import { type MonitoringSettings, noMonitoring } from "../../monitoring-settings.ts";
import type { OperatorSettings } from "../../settings.ts";
import type { KueueSettings, QuotaSettings, Team } from "../../team-settings.ts";
import { charts, versions } from "../../versions.ts";
import { createDashboard } from "../monitoring/grafana.ts";
import { rayDashboard } from "../monitoring/ray-dashboard.ts";
import { podsOf } from "../network-peers.ts";
import { createClassReader } from "./client-role.ts";
import { KubeRayOperator, operatorLabels } from "./kuberay-operator.ts";
import { Kueue, queueName } from "./kueue.ts";
import { logsConfigMap, logsImage } from "./ray-logs.ts";
import { priorityClasses } from "./ray-names.ts";
import { createRayNamespace } from "./ray-namespace.ts";
import { createClusterRole } from "./ray-rights.ts";
import { RayTeam } from "./ray-team.ts";

export interface RayPlatformArgs {
  readonly cluster: Cluster;
  /** `lancedb` when absent, where Geneva looks. */
  readonly namespace?: string;
  /** What pods of Ray clusters run as; `geneva-service-account` when absent. */
  readonly serviceAccount?: string;
  /** KubeRay from its chart when absent. */
  readonly operator?: OperatorSettings;
  /** Namespaces whose pods may reach Ray's. Access to a head is code execution on it. */
  readonly allowedNamespaces?: readonly string[];
  /** Whether the namespace goes with the stack on a cluster that is not its own. */
  readonly deleteNamespace?: boolean;
  /** The collector of Ray's metrics; none when absent. */
  readonly monitoring?: MonitoringSettings;
  /** Whether Ray's logs outlive a Ray cluster. */
  readonly rayLogs?: boolean;
  /** The most that pods of the namespace ask for together; all there is when absent. */
  readonly quota?: QuotaSettings | undefined;
  /** Further namespaces of Ray clusters, each with its principals and its part of the bucket. */
  readonly teams?: readonly Team[];
  /** Queues in front of jobs, one for each namespace with a quota; none when absent. */
  readonly kueue?: KueueSettings | undefined;
  /** Added to the values of charts. */
  readonly chartValues?: ChartValuesOf<"kuberayOperator" | "kueue">;
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
  readonly teams: readonly RayTeam[];
  /** Of Ray clusters: its own and those of the teams. */
  readonly namespaces: readonly [string, ...string[]];
  /** Principals that may make Ray clusters, in one of them at least. */
  readonly clients: readonly ClusterSubject[];
  /** What clients need for a side car that keeps Ray's logs; undefined where they go with the pods. */
  readonly logs: { readonly image: pulumi.Input<string>; readonly configMap: string } | undefined;
  /** The name of the queue in each namespace that has a quota; undefined without queues. */
  readonly queue: string | undefined;
  /** What has to be there before pods of a controller run. */
  readonly priorities: readonly pulumi.Resource[];

  constructor(name: string, args: RayPlatformArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:RayPlatform", name, {}, options);
    const { cluster, operator = defaultOperator, allowedNamespaces = [], deleteNamespace = false } = args;
    const { monitoring = noMonitoring, rayLogs = false, quota, teams = [], kueue, chartValues = {} } = args;
    this.namespace = args.namespace ?? platformDefaults.namespace;
    this.serviceAccount = args.serviceAccount ?? platformDefaults.serviceAccount;
    const { namespace, serviceAccount } = this;
    const { head, control } = priorityClasses(namespace);
    this.headPriorityClass = head;
    this.controlPriorityClass = control;
    this.logs = rayLogs ? { image: cluster.services.cachedImage(logsImage), configMap: logsConfigMap } : undefined;
    this.queue = kueue && queueName;

    const all = { cluster, serviceAccount, deleteNamespace, monitoring, rayLogs };
    const identity = cluster.services.createIdentity("ray", { namespace, name: serviceAccount });
    const peers = [...operatorsOwn(operator), ...allowedNamespaces.map((each) => podsOf(each))];
    const { clients } = cluster;
    const own = createRayNamespace(name, { ...all, namespace, identity, clients, quota, peers }, this);
    const withOperator = { ...all, peers: [podsOf(namespace, operatorLabels), ...peers] };
    this.teams = teams.map((team) => new RayTeam(`${name}-${team.name}`, { ...withOperator, team }, { parent: this }));
    this.namespaces = [namespace, ...this.teams.map((team) => team.namespace)];
    this.clients = [...clients, ...this.teams.flatMap((team) => team.clients)];

    const inCluster = { parent: this, provider: cluster.kubernetes };
    const inNamespace = { ...inCluster, dependsOn: [own] };
    createClusterRole(name, this, inNamespace);
    createClassReader(`${name}-client-class`, this, inNamespace);
    createDashboard(`${name}-dashboard`, { monitoring, namespace, dashboard: rayDashboard }, inNamespace);
    this.priorities = createPriorities(name, this, inCluster);
    const namespacesThere = [own, ...this.teams.map(({ ready }) => ready)];
    const before = [...namespacesThere, ...this.priorities];
    const { namespaces } = this;
    new KubeRayOperator(
      `${name}-operator`,
      { cluster, namespaces, operator, values: chartValues.kuberayOperator, before },
      { parent: this },
    );
    if (kueue !== undefined) {
      const queues = [{ namespace, quota }, ...teams].flatMap((each) =>
        each.quota === undefined ? [] : [{ namespace: each.namespace, quota: each.quota }],
      );
      new Kueue(
        `${name}-kueue`,
        { cluster, kueue, values: chartValues.kueue, queues, before: namespacesThere },
        { parent: this },
      );
    }
    this.registerOutputs();
  }
}

/** An operator that is there already, elsewhere, has to reach Ray's dashboards. */
function operatorsOwn(operator: OperatorSettings) {
  return operator.source === "none" && operator.namespace !== undefined ? [podsOf(operator.namespace)] : [];
}

/** They belong to the whole cluster, on which other stacks may be, in other namespaces. */
function createPriorities(
  name: string,
  { controlPriorityClass, headPriorityClass }: Pick<RayPlatform, "controlPriorityClass" | "headPriorityClass">,
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
