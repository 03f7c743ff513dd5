import type * as gcp from "@pulumi/gcp";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { Cluster, ClusterAccess, ClusterSubject, Database, TeamClient, TeamClientArgs } from "../../cluster.ts";
import type { GkeConfig } from "../../config.ts";
import { type Architecture, supportsOnlyHyperdisk } from "../../machines.ts";
import { createsDatabase } from "../../settings/catalog-settings.ts";
import { ClusterProvider } from "../cluster-provider.ts";
import { componentName } from "../component-name.ts";
import { type AccountDeps, createClientAccount, createNodeAccount, grantAdmins } from "./gke-accounts.ts";
import { GkeApis } from "./gke-apis.ts";
import { createControlPlane, kubeconfigOf } from "./gke-control-plane.ts";
import { createCloudSql } from "./gke-database.ts";
import { createGkeKey } from "./gke-encryption.ts";
import { type GkeNetwork, OwnGkeNetwork } from "./gke-network.ts";
import { createNodePool } from "./gke-node-pool.ts";
import { GkeServices } from "./gke-services.ts";

/** A regional GKE cluster with private nodes, its network, node pools, bucket and identities. */
export class GkeCluster extends pulumi.ComponentResource implements Cluster {
  readonly isOwn = true;
  readonly kubernetes: ClusterProvider;
  readonly access: ClusterAccess & { readonly kubeconfig: pulumi.Output<string> };
  readonly services: GkeServices;
  readonly storageClass: string;
  readonly coreSelector: Readonly<Record<string, string>>;
  readonly architecture: Architecture;
  readonly clients: readonly ClusterSubject[];
  readonly nodes: readonly pulumi.Resource[];
  readonly #name: string;
  readonly #config: GkeConfig;
  readonly #deps: AccountDeps;
  readonly #network: GkeNetwork;
  /** The key of disks, buckets and databases; Google's own key if undefined. */
  readonly #key: pulumi.Output<string> | undefined;

  constructor(name: string, config: GkeConfig, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:GkeCluster", componentName(name), {}, options);
    this.#name = name;
    this.#config = config;
    this.coreSelector = config.nodeSelectors.core;
    this.architecture = config.architectures.core;
    const { project } = new GkeApis(`${name}-services`, config, { parent: this });
    this.#deps = { parent: this, project, clusterName: config.clusterName };
    this.#network = this.#createNetwork();
    this.#key = this.#createKey();
    const nodeEmail = createNodeAccount(`${name}-nodes`, this.#deps).email;
    const cluster = this.#createControlPlane(nodeEmail);
    const pools = this.#createNodePools(cluster, nodeEmail);
    this.services = this.#createServices(cluster);
    this.clients = this.#createAccounts();
    this.access = this.#accessOf(cluster);
    this.kubernetes = new ClusterProvider(
      `${name}-kubernetes`,
      // The id identifies the cluster. Without it, the provider would interpret a new address as a new cluster and
      // consider all its objects lost.
      { kubeconfig: this.access.kubeconfig, clusterIdentifier: cluster.id },
      { parent: this },
    );
    const { className, created } = this.#createStorageClass();
    this.storageClass = className;
    this.nodes = [...pools, ...created];
    this.registerOutputs();
  }

  #createNetwork(): GkeNetwork {
    const config = this.#config;
    const { network } = config;
    if (network.isAdopted) return { ...network.vpc, needs: [] };
    const args = { config, ranges: network, project: this.#deps.project };
    return new OwnGkeNetwork(`${this.#name}-network`, args, { parent: this });
  }

  #createKey(): pulumi.Output<string> | undefined {
    const { catalog, project: projectId, encryptionKey } = this.#config;
    const ofDatabase = createsDatabase(catalog) ? (["sqladmin"] as const) : [];
    const users = ["storage", "compute", "container", ...ofDatabase] as const;
    return createGkeKey(`${this.#name}-key`, { ...this.#deps, projectId, encryptionKey, users });
  }

  #createControlPlane(nodeEmail: pulumi.Output<string>): gcp.container.Cluster {
    const { project } = this.#deps;
    const args = { config: this.#config, project, network: this.#network, nodeEmail, key: this.#key };
    return createControlPlane(this.#name, args, this);
  }

  #createNodePools(cluster: gcp.container.Cluster, nodeEmail: pulumi.Output<string>): gcp.container.NodePool[] {
    const deps = { ...this.#deps, config: this.#config, cluster, nodeEmail, key: this.#key };
    return this.#config.nodePools.map((pool) => createNodePool(`${this.#name}-${pool.name}`, pool, deps));
  }

  #createServices({ workloadIdentityConfig }: gcp.container.Cluster): GkeServices {
    const identityPool = workloadIdentityConfig.apply(({ workloadPool }) => workloadPool ?? "");
    const { network } = this.#config;
    const proxyCidrs = network.isAdopted ? [] : [network.proxyCidr];
    return new GkeServices(this.#name, {
      ...{ ...this.#deps, config: this.#config, key: this.#key, identityPool, proxyCidrs },
    });
  }

  /** Creates the account of clients and grants administrators their rights. */
  #createAccounts(): readonly ClusterSubject[] {
    const [config, { bucket }] = [this.#config, this.services];
    const ofStack = { team: undefined, principals: config.clientPrincipals, folder: "", bucket };
    const client = createClientAccount(`${this.#name}-client`, ofStack, this.#deps);
    grantAdmins(`${this.#name}-admin`, config, this.#deps);
    return [{ kind: "User", name: client.email }];
  }

  #accessOf(cluster: gcp.container.Cluster) {
    const config = this.#config;
    return {
      clusterName: cluster.name,
      configMethod: "GKE_AUTH",
      region: config.region,
      project: config.project,
      kubeconfig: pulumi.secret(kubeconfigOf(cluster, config)),
      kubernetesVersion: cluster.masterVersion,
    } as const;
  }

  createTeamClient(team: string, args: TeamClientArgs): TeamClient {
    const { bucket } = this.services;
    const { email } = createClientAccount(`${this.#name}-client-${team}`, { ...args, team, bucket }, this.#deps);
    return { clients: [{ kind: "User", name: email }], roleName: undefined };
  }

  createDatabase({ replicas }: { readonly replicas: number }): Database {
    const { project } = this.#deps;
    const args = { config: this.#config, project, network: this.#network, replicas, key: this.#key };
    return createCloudSql(`${this.#name}-database`, args, this);
  }

  /** Creates a storage class if the stack uses Hyperdisk, a key or labels, which GKE's default class does not support. */
  #createStorageClass(): { readonly className: string; readonly created: readonly pulumi.Resource[] } {
    const { nodePools, tags } = this.#config;
    const needsHyperdisk = nodePools.some(
      ({ role, machineTypes: [machineType] }) => role === "core" && supportsOnlyHyperdisk(machineType),
    );
    const labels = Object.entries(tags).map(([key, value]) => `${key}=${value}`);
    if (!needsHyperdisk && this.#key === undefined && labels.length === 0)
      return { className: "premium-rwo", created: [] };
    const [className, type] = needsHyperdisk ? ["hyperdisk-balanced", "hyperdisk-balanced"] : ["tiltyard", "pd-ssd"];
    const created = new kubernetes.storage.v1.StorageClass(
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
      this.kubernetes.owned("cluster", { parent: this, provider: this.kubernetes }),
    );
    return { className, created: [created] };
  }
}
