import * as gcp from "@pulumi/gcp";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { identityAnnotations } from "@tiltyard/protocol";
import type {
  Backups,
  Cluster,
  ClusterAccess,
  ClusterSubject,
  Database,
  ImageRepository,
  PodIdentity,
  ServiceAccountName,
} from "../../cluster.ts";
import type { GkeConfig } from "../../config.ts";
import { roleLabels, takesOnlyHyperdisk } from "../../node-pools.ts";
import {
  type AccountContext,
  createAccount,
  createClientAccount,
  createNodeAccount,
  grantAdmins,
} from "./gke-accounts.ts";
import { GkeBucket } from "./gke-bucket.ts";
import { createControlPlane, kubeconfigOf } from "./gke-control-plane.ts";
import { createCloudSql } from "./gke-database.ts";
import { createGkeImages } from "./gke-images.ts";
import { type GkeNetwork, MadeNetwork } from "./gke-network.ts";
import { createNodePool } from "./gke-node-pool.ts";
import { GkeServices } from "./gke-services.ts";

/** Google's front ends and health checks. */
const googleFrontEnds = ["35.191.0.0/16", "130.211.0.0/22"];

/** A regional GKE cluster with private nodes, its network, node pools, bucket and identities. */
export class GkeCluster extends pulumi.ComponentResource implements Cluster {
  readonly isOwn = true;
  readonly kubernetes: kubernetes.Provider;
  readonly access: ClusterAccess;
  readonly bucketUri: pulumi.Output<string>;
  readonly storageClass: pulumi.Input<string>;
  readonly coreSelector: Readonly<Record<string, string>>;
  readonly podEnvironment = {};
  readonly loadBalancerRanges: Readonly<Record<string, readonly string[]>>;
  readonly clients: readonly ClusterSubject[];
  readonly nodes: readonly pulumi.Resource[];
  readonly #name: string;
  readonly #config: GkeConfig;
  readonly #context: AccountContext;
  readonly #network: GkeNetwork;
  readonly #bucket: GkeBucket;
  /** `PROJECT.svc.id.goog`, known when it is there: the first cluster of a project makes it. */
  readonly #identityPool: pulumi.Output<string>;

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
    const nodeEmail = createNodeAccount(`${name}-nodes`, this.#context).email;
    const cluster = createControlPlane(name, { config, project, network: this.#network, nodeEmail }, this);
    this.#identityPool = cluster.workloadIdentityConfig.apply(({ workloadPool }) => workloadPool ?? "");
    this.nodes = config.nodePools.map((pool) =>
      createNodePool(`${name}-${pool.name}`, pool, { config, project, cluster, nodeEmail, parent: this }),
    );
    this.#bucket = new GkeBucket(`${name}-bucket`, { config, project, adopted: config.bucket }, { parent: this });
    const client = createClientAccount(`${name}-client`, config, this.#bucket, this.#context);
    grantAdmins(`${name}-admin`, config, this.#context);

    const kubeconfig = pulumi.secret(kubeconfigOf(cluster, config));
    this.kubernetes = new kubernetes.Provider(
      `${name}-kubernetes`,
      { kubeconfig, enableServerSideApply: true },
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
    this.bucketUri = this.#bucket.uri;
    this.storageClass = this.#storageClass();
    this.coreSelector = roleLabels(config, "core");
    this.loadBalancerRanges = { gce: googleFrontEnds, "gce-internal": googleFrontEnds };
    this.clients = [{ kind: "User", name: client.email }];
    this.registerOutputs();
  }

  /** A cloud service account for exactly one service account of Kubernetes; requirements.md 5.1, variant A. */
  createIdentity(name: string, { namespace, name: accountName }: ServiceAccountName): PodIdentity {
    const account = createAccount(`${this.#name}-${name}`, `Pods of ${namespace}/${accountName}`, this.#context);
    this.#bucket.allowObjects(`${this.#name}-${name}`, account.email, this);
    new gcp.serviceaccount.IAMMember(
      `${this.#name}-${name}-identity`,
      {
        serviceAccountId: account.name,
        role: "roles/iam.workloadIdentityUser",
        member: pulumi.interpolate`serviceAccount:${this.#identityPool}[${namespace}/${accountName}]`,
      },
      { parent: this },
    );
    const annotations = account.email.apply(
      (email): Record<string, string> => ({ [identityAnnotations.GKE_AUTH]: email }),
    );
    return { annotations, principal: account.email };
  }

  /** Google's tokens are made less by whoever has them. */
  createVendingRole(): undefined {}

  createBackups({ principal }: PodIdentity): Backups {
    const { litestream } = this.#config.catalog;
    const name = `${this.#name}-backups`;
    const adopted = litestream === true || litestream === false ? undefined : litestream.bucket;
    const { project } = this.#context;
    const bucket = new GkeBucket(name, { config: this.#config, project, adopted }, { parent: this });
    bucket.allowObjects(name, principal, this);
    return { uri: bucket.uri, region: undefined };
  }

  createImageRepository(): ImageRepository {
    return createGkeImages(`${this.#name}-images`, this.#config, this.#context);
  }

  createDatabase({ replicas }: { readonly replicas: number }): Database {
    const { project } = this.#context;
    const args = { config: this.#config, project, network: this.#network, replicas };
    return createCloudSql(`${this.#name}-database`, args, this);
  }

  /** GKE's own class, unless the machines for the catalog take Hyperdisk alone: GKE has no class for that. */
  #storageClass(): pulumi.Input<string> {
    const needsHyperdisk = this.#config.nodePools.some(
      ({ role, machineType }) => role === "core" && takesOnlyHyperdisk(machineType),
    );
    if (!needsHyperdisk) return "premium-rwo";
    return new kubernetes.storage.v1.StorageClass(
      `${this.#name}-hyperdisk`,
      {
        metadata: { name: "hyperdisk-balanced" },
        provisioner: "pd.csi.storage.gke.io",
        parameters: { type: "hyperdisk-balanced" },
        volumeBindingMode: "WaitForFirstConsumer",
        allowVolumeExpansion: true,
      },
      { parent: this, provider: this.kubernetes },
    ).metadata.name;
  }
}
