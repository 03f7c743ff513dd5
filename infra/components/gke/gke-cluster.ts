import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { Cluster, ClusterAccess, ClusterSubject, Database, TeamClient, TeamClientArgs } from "../../cluster.ts";
import type { GkeConfig } from "../../config.ts";
import { type Architecture, takesOnlyHyperdisk } from "../../machines.ts";
import { type AccountContext, createClientAccount, createNodeAccount, grantAdmins } from "./gke-accounts.ts";
import { GkeCloudServices } from "./gke-cloud-services.ts";
import { createControlPlane, kubeconfigOf } from "./gke-control-plane.ts";
import { createCloudSql } from "./gke-database.ts";
import { createGkeKey } from "./gke-encryption.ts";
import { type GkeNetwork, MadeNetwork } from "./gke-network.ts";
import { createNodePool } from "./gke-node-pool.ts";
import { GkeServices } from "./gke-services.ts";

/** A regional GKE cluster with private nodes, its network, node pools, bucket and identities. */
export class GkeCluster extends pulumi.ComponentResource implements Cluster {
  readonly isOwn = true;
  readonly kubernetes: kubernetes.Provider;
  readonly access: ClusterAccess;
  readonly services: GkeCloudServices;
  readonly storageClass: string;
  readonly coreSelector: Readonly<Record<string, string>>;
  readonly architecture: Architecture;
  readonly clients: readonly ClusterSubject[];
  readonly nodes: readonly pulumi.Resource[];
  readonly #name: string;
  readonly #config: GkeConfig;
  readonly #context: AccountContext;
  readonly #network: GkeNetwork;
  /** What is encrypted with; Google's own when undefined. */
  readonly #key: pulumi.Output<string> | undefined;

  constructor(name: string, config: GkeConfig, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:GkeCluster", name, {}, options);
    const { project } = new GkeServices(`${name}-services`, config, { parent: this });
    this.#name = name;
    this.#config = config;
    this.#context = { parent: this, project };
    const { network } = config;
    this.#network = network.isAdopted
      ? { ...network.vpc, wayOut: [] }
      : new MadeNetwork(`${name}-network`, { config, ranges: network, project }, { parent: this });
    const hasDatabase = config.catalog.enabled && config.catalog.database === "postgres";
    const key = createGkeKey(`${name}-key`, {
      ...{ parent: this, project, projectId: config.project, encryptionKey: config.encryptionKey },
      users: ["storage", "compute", "container", ...(hasDatabase ? (["sqladmin"] as const) : [])],
    });
    this.#key = key;
    const nodeEmail = createNodeAccount(`${name}-nodes`, this.#context).email;
    const cluster = createControlPlane(name, { config, project, network: this.#network, nodeEmail, key }, this);
    const identityPool = cluster.workloadIdentityConfig.apply(({ workloadPool }) => workloadPool ?? "");
    const pools = config.nodePools.map((pool) =>
      createNodePool(`${name}-${pool.name}`, pool, { config, project, cluster, nodeEmail, key, parent: this }),
    );
    this.services = new GkeCloudServices(name, { ...this.#context, config, key, identityPool });
    const { bucket } = this.services;
    const ofStack = { team: undefined, principals: config.clientPrincipals, folder: "", bucket };
    const client = createClientAccount(`${name}-client`, ofStack, this.#context);
    grantAdmins(`${name}-admin`, config, this.#context);

    const kubeconfig = pulumi.secret(kubeconfigOf(cluster, config));
    this.kubernetes = new kubernetes.Provider(
      `${name}-kubernetes`,
      // Without its id, a cluster at another address is taken for another one, and all that is on it for lost.
      { kubeconfig, clusterIdentifier: cluster.id, enableServerSideApply: true },
      { parent: this },
    );
    this.access = {
      clusterName: cluster.name,
      configMethod: "GKE_AUTH",
      region: config.region,
      project: config.project,
      kubeconfig,
      kubernetesVersion: cluster.masterVersion,
    };
    const { className, made } = this.#createStorageClass();
    this.storageClass = className;
    this.nodes = [...pools, ...made];
    this.coreSelector = config.nodeSelectors.core;
    this.architecture = config.architectures.core;
    this.clients = [{ kind: "User", name: client.email }];
    this.registerOutputs();
  }

  createTeamClient(team: string, args: TeamClientArgs): TeamClient {
    const { bucket } = this.services;
    const { email } = createClientAccount(`${this.#name}-client-${team}`, { ...args, team, bucket }, this.#context);
    return { clients: [{ kind: "User", name: email }], roleName: undefined };
  }

  createDatabase({ replicas }: { readonly replicas: number }): Database {
    const { project } = this.#context;
    const args = { config: this.#config, project, network: this.#network, replicas, key: this.#key };
    return createCloudSql(`${this.#name}-database`, args, this);
  }

  /** GKE's own class, which knows neither Hyperdisk, nor a key, nor labels: a class of the stack's own where there is such. */
  #createStorageClass(): { readonly className: string; readonly made: readonly pulumi.Resource[] } {
    const { nodePools, tags } = this.#config;
    const needsHyperdisk = nodePools.some(
      ({ role, machineTypes: [machineType] }) => role === "core" && takesOnlyHyperdisk(machineType),
    );
    const labels = Object.entries(tags).map(([key, value]) => `${key}=${value}`);
    if (!needsHyperdisk && this.#key === undefined && labels.length === 0)
      return { className: "premium-rwo", made: [] };
    const [className, type] = needsHyperdisk ? ["hyperdisk-balanced", "hyperdisk-balanced"] : ["tiltyard", "pd-ssd"];
    const made = new kubernetes.storage.v1.StorageClass(
      `${this.#name}-${needsHyperdisk ? "hyperdisk" : "disks"}`,
      {
        metadata: { name: className },
        provisioner: "pd.csi.storage.gke.io",
        parameters: {
          type,
          ...(this.#key !== undefined && { "disk-encryption-kms-key": this.#key }),
          ...(labels.length > 0 && { labels: labels.join(",") }),
        },
        volumeBindingMode: "WaitForFirstConsumer",
        allowVolumeExpansion: true,
      },
      { parent: this, provider: this.kubernetes },
    );
    return { className, made: [made] };
  }
}
