import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import {
  catalogLabels,
  catalogPort,
  managedByRunner,
  runnerName,
  runnerRights,
  userOfAccount,
} from "@tiltyard/platform";
import type { Cluster } from "../../cluster.ts";
import { type RunnerSettings, runnerDefaults } from "../../settings/runner-settings.ts";
import { createAdmissionPolicy, isUser } from "../admission-policy.ts";
import type { CatalogParts } from "../catalog/catalog.ts";
import { componentName } from "../component-name.ts";
import { createGrantedRole } from "../granted-role.ts";
import { tcp, toNameServers } from "../network-peers.ts";
import type { PlatformParts } from "../ray/ray-platform.ts";
import { type RunnerDeps, runnerPodSpec } from "./runner-pod.ts";

export interface RunnerArgs extends Partial<RunnerSettings> {
  /** The cluster of the runner's pod. */
  readonly cluster: Cluster;
  /** The platform that executes the jobs. */
  readonly platform: PlatformParts;
  /** The catalog with the jobs. The runner is in its namespace, where no Ray job can use the runner's account. */
  readonly catalog: CatalogParts;
  /** The default parameters of all Ray clusters (docs/reference/ray-cluster.md), which their templates can override. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** The arguments of a runner's parts. */
interface ChildDeps extends RunnerDeps {
  readonly parameters: Readonly<Record<string, unknown>>;
}

type Child = pulumi.CustomResourceOptions & { readonly parent: pulumi.Resource };

/** The labels by which the deployment and the network policy select the pod. */
const labels = { "app.kubernetes.io/name": runnerName } as const;
/**
 * The ports of API servers of clouds, kubeadm and k3s, minikube, and MicroK8s. A network policy applies to the port
 * behind the service `kubernetes`.
 */
const apiServerPorts = [443, 6443, 8443, 16443];

/**
 * The runner of the catalog's jobs, which creates a RayJob in the namespace of Ray for each job. Its account has only
 * the rights that this needs and no identity in the cloud, and its API key may create keys for jobs.
 */
export class Runner extends pulumi.ComponentResource {
  /** The names of Ray clusters that the request of a job may specify. */
  readonly rayClusters: readonly string[];

  constructor(name: string, args: RunnerArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:Runner", componentName(name), {}, args.cluster.kubernetes.owned("runner", options));
    const { cluster, platform, catalog, parameters = {}, ...given } = args;
    const deps = { cluster, platform, catalog, parameters, settings: { ...runnerDefaults, ...given } };
    this.rayClusters = Object.keys(deps.settings.rayClusters);
    const child = { parent: this, provider: cluster.kubernetes, dependsOn: [platform.resource, catalog.resource] };
    const account = createAccount(name, deps, child);
    const pod = runnerPodSpec(deps, {
      account,
      file: createFile(name, deps, child),
      secret: createSecret(name, deps, child),
    });
    new kubernetes.apps.v1.Deployment(
      name,
      {
        metadata: metadataOf(deps),
        spec: {
          replicas: 1,
          // A second pod would only wait for capacity while the first one still works.
          strategy: { type: "Recreate" },
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: pod },
        },
      },
      child,
    );
    createPolicy(name, deps, child);
    this.registerOutputs();
  }
}

function metadataOf({ catalog }: RunnerDeps) {
  return { name: runnerName, namespace: catalog.namespace, labels };
}

/** Creates an account in the catalog's namespace, with a role in each namespace of Ray. */
function createAccount(name: string, deps: ChildDeps, child: Child): pulumi.Output<string> {
  const account = new kubernetes.core.v1.ServiceAccount(
    name,
    { metadata: metadataOf(deps), automountServiceAccountToken: false },
    child,
  );
  const subjects = [{ kind: "ServiceAccount", name: runnerName, namespace: deps.catalog.namespace }] as const;
  const { platform } = deps;
  const policy = createSecretsPolicy(name, deps, child);
  const roles = [{ role: name, namespace: platform.namespace }].concat(
    platform.teams.map((team) => ({ role: `${name}-${team.name}`, namespace: team.namespace })),
  );
  for (const { role, namespace } of roles)
    createGrantedRole(
      role,
      { name: runnerName, namespace, rules: runnerRights, subjects },
      { ...child, dependsOn: [...policy] },
    );
  return account.metadata.name;
}

/**
 * Restricts the runner to secrets that it created itself. Roles know no labels, and the names of its secrets depend on
 * their jobs. A secret of another type could get a token of any service account of the namespace.
 */
function createSecretsPolicy(name: string, { platform, catalog }: RunnerDeps, child: Child) {
  const [[label, value] = []] = Object.entries(managedByRunner);
  const isOwn = (object: string) =>
    `${object} == null || (has(${object}.metadata.labels) && '${label}' in ${object}.metadata.labels && ` +
    `${object}.metadata.labels['${label}'] == '${value}' && ${object}.type == 'Opaque')`;
  const message = `The runner may only change secrets of the type Opaque with the label ${label}=${value}`;
  return createAdmissionPolicy(
    `${name}-secrets`,
    {
      policyName: `tiltyard-runner-secrets-${catalog.namespace}`,
      namespaces: platform.namespaces,
      rule: {
        ...{ apiGroups: [""], apiVersions: ["*"], resources: ["secrets"] },
        operations: ["CREATE", "UPDATE", "DELETE"],
      },
      condition: isUser(userOfAccount(catalog.namespace, runnerName)),
      validations: ["object", "oldObject"].map((object) => ({ expression: isOwn(object), message })),
    },
    child,
  );
}

/** Creates the file with the Ray clusters of jobs. A change creates a new file, and thus a new pod. */
function createFile(name: string, deps: ChildDeps, child: Child): pulumi.Output<string> {
  const { platform, catalog, parameters, settings } = deps;
  const everywhere = {
    namespace: platform.namespace,
    config_method: "IN_CLUSTER",
    service_account: platform.serviceAccount,
    head_priority_class: platform.headPriorityClass,
    catalog_url: catalog.url,
    ...parameters,
  };
  const rayClusters = Object.fromEntries(
    Object.entries(settings.rayClusters).map(([cluster, template]) => [cluster, { ...everywhere, ...template }]),
  );
  const teams = Object.fromEntries(
    platform.teams.map((team) => [team.name, { namespace: team.namespace, queue: platform.queue }]),
  );
  return new kubernetes.core.v1.ConfigMap(
    name,
    {
      metadata: { namespace: catalog.namespace, labels },
      data: {
        "runner.yaml": pulumi.jsonStringify({ rayClusters, teams, jobSecrets: settings.jobSecrets }, undefined, 2),
      },
    },
    child,
  ).metadata.name;
}

function createSecret(name: string, { catalog }: RunnerDeps, child: Child): pulumi.Output<string> {
  return new kubernetes.core.v1.Secret(
    name,
    {
      metadata: { namespace: catalog.namespace, labels },
      type: "Opaque",
      stringData: { TILTYARD_API_KEY: catalog.runnerKey },
    },
    child,
  ).metadata.name;
}

/** Creates the network policy. The runner accepts no requests and only calls the catalog and the API server. */
function createPolicy(name: string, deps: ChildDeps, child: Child): void {
  new kubernetes.networking.v1.NetworkPolicy(
    name,
    {
      metadata: metadataOf(deps),
      spec: {
        podSelector: { matchLabels: labels },
        policyTypes: ["Ingress", "Egress"],
        ingress: [],
        egress: [
          toNameServers,
          { to: [{ podSelector: { matchLabels: catalogLabels } }], ports: [tcp(catalogPort)] },
          { ports: apiServerPorts.map(tcp) },
        ],
      },
    },
    child,
  );
}
