import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { platformDefaults } from "@tiltyard/platform";
import type { BucketAccess, Cluster, ClusterSubject } from "../../cluster.ts";
import type { ChartValuesOf } from "../../settings/chart-values.ts";
import { collectorNamespaces, type MonitoringSettings, noMonitoring } from "../../settings/monitoring-settings.ts";
import { type OperatorSettings, operatorDefaults } from "../../settings/settings.ts";
import type { KueueSettings, QuotaSettings, Team } from "../../settings/team-settings.ts";
import { componentName } from "../component-name.ts";
import { createDashboard } from "../monitoring/grafana.ts";
import { rayDashboard } from "../monitoring/ray-dashboard.ts";
import { podsOf, tcp } from "../network-peers.ts";
import type { Definition } from "./chart-definitions.ts";
import { createClientPolicy } from "./client-policy.ts";
import { createClassReader } from "./client-role.ts";
import { KubeRayOperator, operatorMetricsPort, operatorPods } from "./kuberay-operator.ts";
import { Kueue, queueName } from "./kueue.ts";
import { createPriorityClasses, priorityClasses } from "./priority-classes.ts";
import { logsConfigMap, logsImage } from "./ray-logs.ts";
import { createRayNamespace, type RayNamespaceArgs } from "./ray-namespace.ts";
import { createClusterRole } from "./ray-rights.ts";
import { RayTeam } from "./ray-team.ts";

export interface RayPlatformArgs {
  /** The cluster of Ray's pods and of their operator. */
  readonly cluster: Cluster;
  /** The namespace; `lancedb` when absent, which is Geneva's default. */
  readonly namespace?: string;
  /** The service account of the pods of Ray clusters; `geneva-service-account` when absent. */
  readonly serviceAccount?: string;
  /** The access of Ray's pods to the bucket: `direct` by default, or `vended`, with credentials of the catalog alone. */
  readonly bucketAccess?: BucketAccess;
  /** KubeRay from its chart when absent. */
  readonly operator?: OperatorSettings;
  /** KubeRay's resource definitions, which the stack creates and upgrades; when absent, Helm installs them once. */
  readonly definitions?: readonly Definition[] | undefined;
  /** Namespaces whose pods may reach Ray's. Access to a head is code execution on it. */
  readonly allowedNamespaces?: readonly string[];
  /** Deletes the namespace with the stack on a cluster that the stack did not create. */
  readonly deleteNamespace?: boolean;
  /** The collector of Ray's metrics; none when absent. */
  readonly monitoring?: MonitoringSettings;
  /** Preserves Ray's logs after the deletion of a Ray cluster. */
  readonly rayLogs?: boolean;
  /** The limit of the total requests of the namespace's pods; unlimited when absent. */
  readonly quota?: QuotaSettings | undefined;
  /** The additional namespaces of Ray clusters, each with its principals and its folder of the bucket. */
  readonly teams?: readonly Team[];
  /** The queues of jobs, one for each namespace with a quota; none when absent. */
  readonly kueue?: KueueSettings | undefined;
  /** The additional values of charts. */
  readonly chartValues?: ChartValuesOf<"kuberayOperator" | "kueue">;
}

const defaults = {
  ...{ namespace: platformDefaults.namespace, serviceAccount: platformDefaults.serviceAccount },
  operator: operatorDefaults,
  ...{
    bucketAccess: "direct",
    allowedNamespaces: [],
    deleteNamespace: false,
    monitoring: noMonitoring,
    rayLogs: false,
  },
  ...{ teams: [], chartValues: {} },
} satisfies Partial<RayPlatformArgs>;

type RayPlatformSettings = RayPlatformArgs & Required<Pick<RayPlatformArgs, keyof typeof defaults>>;

/** The parts of a platform that a catalog and a runner use. */
export interface PlatformParts {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly headPriorityClass: string;
  /** The priority class of the operator and other essential pods. */
  readonly controlPriorityClass: string;
  readonly teams: readonly { readonly name: string; readonly namespace: string }[];
  /** The namespaces of Ray clusters: that of the platform and those of the teams. */
  readonly namespaces: readonly string[];
  /** The principals that may create Ray clusters in at least one of them. */
  readonly clients: readonly ClusterSubject[];
  /** The parameters of a side car that preserves Ray's logs; undefined if it is disabled. */
  readonly logs: { readonly image: pulumi.Input<string>; readonly configMap: string } | undefined;
  /** The name of the queue in each namespace with a quota; undefined without queues. */
  readonly queue: string | undefined;
  /** The resources that must exist before the pods of a controller run. */
  readonly priorities: readonly pulumi.Resource[];
  /** The resource that contains the whole platform. */
  readonly resource: pulumi.Resource;
}

/**
 * The environment of Ray clusters: the namespace, the service account of their pods with its role and its right to the
 * bucket, and the operator that creates them.
 */
export class RayPlatform extends pulumi.ComponentResource implements PlatformParts {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly headPriorityClass: string;
  readonly controlPriorityClass: string;
  readonly teams: readonly RayTeam[];
  readonly namespaces: readonly [string, ...string[]];
  readonly clients: readonly ClusterSubject[];
  readonly logs: PlatformParts["logs"];
  readonly queue: string | undefined;
  readonly priorities: readonly pulumi.Resource[];

  constructor(name: string, args: RayPlatformArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:RayPlatform", componentName(name), {}, args.cluster.kubernetes.owned("ray", options));
    const settings: RayPlatformSettings = { ...defaults, ...args };
    const { namespace, serviceAccount, cluster, rayLogs, kueue } = settings;
    const { head, control } = priorityClasses(namespace);
    this.namespace = namespace;
    this.serviceAccount = serviceAccount;
    this.headPriorityClass = head;
    this.controlPriorityClass = control;
    this.logs = rayLogs ? { image: cluster.services.cachedImage(logsImage), configMap: logsConfigMap } : undefined;
    this.queue = kueue && queueName;

    const own = createOwnNamespace(name, settings, this);
    this.teams = createTeams(name, settings, this);
    this.namespaces = [namespace, ...this.teams.map((team) => team.namespace)];
    this.clients = [...cluster.clients, ...this.teams.flatMap((team) => team.clients)];
    this.priorities = createPriorityClasses(name, namespace, { parent: this, provider: cluster.kubernetes });
    createRights(name, this, settings, own);
    const policy = createClientPolicy(`${name}-clients`, this, { parent: this, provider: cluster.kubernetes });
    const namespacesReady = [own, ...this.teams.map(({ ready }) => ready)];
    const ready = [...namespacesReady, ...this.priorities, ...policy];
    const kuberay = createOperator(name, this, settings, ready);
    // Kueue's webhook refuses Ray jobs until its manager is ready, so it is the last one.
    createQueues(name, this, settings, [...ready, kuberay]);
    this.registerOutputs();
  }

  get resource(): pulumi.Resource {
    return this;
  }
}

function createOwnNamespace(name: string, settings: RayPlatformSettings, parent: RayPlatform) {
  const { cluster, namespace, serviceAccount, bucketAccess } = settings;
  const identity = cluster.services.createIdentity("ray", { namespace, name: serviceAccount, bucketAccess });
  // A privileged pod could read the secrets of all pods of its node.
  const enforce = "baseline";
  const { clients } = cluster;
  const { teams, operator } = settings;
  const namespaces = [namespace, ...teams.map((team) => team.namespace)];
  const args: RayNamespaceArgs = {
    ...settings,
    enforce,
    identity,
    clients,
    quota: settings.quota,
    peers: peersOf(settings),
    foundations: { namespaces, serviceAccount, operator: operator.source },
  };
  return createRayNamespace(name, args, parent);
}

function createTeams(name: string, settings: RayPlatformSettings, parent: RayPlatform): RayTeam[] {
  const peers = peersOf(settings);
  return settings.teams.map((team) => new RayTeam(`${name}-${team.name}`, { ...settings, peers, team }, { parent }));
}

/** Returns the additional pods that may connect to Ray's pods. The operator calls the dashboards. */
function peersOf({ namespace, operator, allowedNamespaces }: RayPlatformSettings) {
  const itsNamespace = operator.source === "none" ? (operator.namespace ?? namespace) : namespace;
  const ofOperator = podsOf(itsNamespace, itsNamespace === namespace ? operatorPods : undefined);
  return [ofOperator, ...allowedNamespaces.map((each) => podsOf(each))];
}

function createRights(name: string, platform: RayPlatform, settings: RayPlatformSettings, own: pulumi.Resource): void {
  const options = { parent: platform, provider: settings.cluster.kubernetes, dependsOn: [own] };
  showOperatorMetrics(`${name}-operator`, settings, options);
  createClusterRole(name, platform, options);
  createClassReader(`${name}-client-class`, platform, options);
  createDashboard(`${name}-dashboard`, { ...settings, dashboard: rayDashboard }, options);
}

/** Lets collectors read the metrics of the operator, whose chart can create a monitor of them. */
function showOperatorMetrics(
  name: string,
  { namespace, operator, monitoring }: RayPlatformSettings,
  options: pulumi.CustomResourceOptions,
): void {
  const from = collectorNamespaces(monitoring).map((each) => podsOf(each));
  if (operator.source !== "helm" || from.length === 0) return;
  new kubernetes.networking.v1.NetworkPolicy(
    name,
    {
      metadata: { name: "kuberay-operator", namespace },
      spec: {
        podSelector: operatorPods,
        policyTypes: ["Ingress"],
        ingress: [{ from, ports: [tcp(operatorMetricsPort)] }],
      },
    },
    options,
  );
}

function createOperator(
  name: string,
  platform: RayPlatform,
  { cluster, operator, definitions, chartValues }: RayPlatformSettings,
  before: readonly pulumi.Resource[],
): KubeRayOperator {
  const { namespaces } = platform;
  const args = { cluster, operator, definitions, namespaces, values: chartValues.kuberayOperator, before };
  return new KubeRayOperator(`${name}-operator`, args, { parent: platform });
}

/** Creates a queue for each namespace with a quota. */
function createQueues(
  name: string,
  platform: RayPlatform,
  { cluster, namespace, quota, teams, kueue, chartValues }: RayPlatformSettings,
  before: readonly pulumi.Resource[],
): void {
  if (kueue === undefined) return;
  const queues = [{ namespace, quota }, ...teams].flatMap((each) =>
    each.quota === undefined ? [] : [{ namespace: each.namespace, quota: each.quota }],
  );
  const args = { cluster, kueue, values: chartValues.kueue, queues, before };
  new Kueue(`${name}-kueue`, { ...args, priorityClass: platform.controlPriorityClass }, { parent: platform });
}
