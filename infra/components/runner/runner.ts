import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { catalogLabels, catalogPort, runnerName, runnerRights } from "@tiltyard/protocol";
import type { Cluster } from "../../cluster.ts";
import { type RunnerSettings, runnerDefaults } from "../../runner-settings.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { createGrantedRole } from "../granted-role.ts";
import { tcp, toNameServers } from "../network-peers.ts";
import type { RayPlatform } from "../ray/ray-platform.ts";
import { runnerPodSpec } from "./runner-pod.ts";

export interface RunnerArgs extends Partial<RunnerSettings> {
  readonly cluster: Cluster;
  /** Where its jobs run. */
  readonly platform: RayPlatform;
  /** Whose jobs it runs; it is beside it, where no Ray job can run as it. */
  readonly catalog: Catalog;
  /** Parameters of docs/reference/ray-cluster.md that each Ray cluster has, but for those that its template says. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** The arguments of a runner's parts. */
export interface RunnerPlace extends Omit<RunnerArgs, keyof RunnerSettings> {
  readonly settings: RunnerSettings;
}

type Child = pulumi.CustomResourceOptions & { readonly parent: pulumi.Resource };

const labels = { "app.kubernetes.io/name": runnerName } as const;
/** Of clouds, of kubeadm and k3s, of minikube, of MicroK8s: a policy sees the port that the service `kubernetes` leads to. */
const apiServerPorts = [443, 6443, 8443, 16443];

/**
 * The runner of the catalog's jobs: each becomes a RayJob in the namespace of Ray. It has an account of its own,
 * which may do there what that needs, no identity in the cloud, and a key of the catalog that makes keys for jobs.
 */
export class Runner extends pulumi.ComponentResource {
  /** The names that a job's request may give its Ray cluster. */
  readonly rayClusters: readonly string[];

  constructor(name: string, args: RunnerArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:Runner", name, {}, args.cluster.kubernetes.owned(options));
    const { cluster, platform, catalog, parameters = {}, ...given } = args;
    const place = { cluster, platform, catalog, parameters, settings: { ...runnerDefaults, ...given } };
    this.rayClusters = Object.keys(place.settings.rayClusters);
    const child = { parent: this, provider: cluster.kubernetes, dependsOn: [platform, catalog] };
    const account = createAccount(name, place, child);
    const pod = runnerPodSpec(place, {
      account,
      file: createFile(name, place, child),
      secret: createSecret(name, place, child),
    });
    new kubernetes.apps.v1.Deployment(
      name,
      {
        metadata: metadataOf(place),
        spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } },
      },
      child,
    );
    createPolicy(name, place, child);
    this.registerOutputs();
  }
}

function metadataOf({ catalog }: RunnerPlace) {
  return { name: runnerName, namespace: catalog.namespace, labels };
}

/** Creates an account in the catalog's namespace, with a role in each namespace of Ray. */
function createAccount(name: string, place: RunnerPlace, child: Child): pulumi.Output<string> {
  const account = new kubernetes.core.v1.ServiceAccount(
    name,
    { metadata: metadataOf(place), automountServiceAccountToken: false },
    child,
  );
  const subjects = [{ kind: "ServiceAccount", name: runnerName, namespace: place.catalog.namespace }] as const;
  const { platform } = place;
  const roles = [{ role: name, namespace: platform.namespace }].concat(
    platform.teams.map((team) => ({ role: `${name}-${team.name}`, namespace: team.namespace })),
  );
  for (const { role, namespace } of roles)
    createGrantedRole(role, { name: runnerName, namespace, rules: runnerRights, subjects }, child);
  return account.metadata.name;
}

/** The Ray clusters of jobs. Other ones make another file, and so another pod. */
function createFile(name: string, place: RunnerPlace, child: Child): pulumi.Output<string> {
  const { platform, catalog, parameters, settings } = place;
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
      data: { "runner.yaml": pulumi.jsonStringify({ rayClusters, teams }, undefined, 2) },
    },
    child,
  ).metadata.name;
}

function createSecret(name: string, { catalog }: RunnerPlace, child: Child): pulumi.Output<string> {
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

/** It takes no requests, and calls the catalog and the API server alone. */
function createPolicy(name: string, place: RunnerPlace, child: Child): void {
  new kubernetes.networking.v1.NetworkPolicy(
    name,
    {
      metadata: metadataOf(place),
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
