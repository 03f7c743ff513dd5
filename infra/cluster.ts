import type * as pulumi from "@pulumi/pulumi";
import type { ClusterProvider } from "./components/cluster-provider.ts";
import type { Architecture } from "./machines.ts";

/**
 * A Kubernetes cluster with everything that the platform and the catalog need from it. The components `GkeCluster`,
 * `EksCluster` and `ExistingCluster` implement it.
 */
export interface Cluster extends pulumi.ComponentResource {
  /** Reports whether the stack created the cluster. Nothing else runs on such a cluster. */
  readonly isOwn: boolean;
  readonly kubernetes: ClusterProvider;
  /** The access data of clients, which are outputs of the stack. */
  readonly access: ClusterAccess;
  /**
   * The storage class of the catalog's volume; the default class of the cluster if undefined. It is not an output,
   * because a replacement of the class would then replace the volume.
   */
  readonly storageClass: string | undefined;
  /** The labels of the nodes for controllers and the catalog; empty for any node. */
  readonly coreSelector: Readonly<Record<string, string>>;
  /** The architecture of those nodes, for which images are built. */
  readonly architecture: Architecture;
  /** The principals that may create Ray clusters, as subjects of a role binding. */
  readonly clients: readonly ClusterSubject[];
  /** The nodes and their dependencies, which must exist before pods can run and must be deleted after them. */
  readonly nodes: readonly pulumi.Resource[];
  readonly services: CloudServices;
  /** Allows principals to create Ray clusters for a team and to use its folder of the bucket. */
  createTeamClient(name: string, team: TeamClientArgs): TeamClient;
}

/**
 * The services of a cluster in addition to machines, from its cloud or its operator: a bucket, identities of pods, a
 * registry.
 */
export interface CloudServices {
  /** The URI of the bucket with the tables. */
  readonly bucketUri: pulumi.Output<string>;
  /** The environment variables that pods need to use the bucket, which the libraries of object stores cannot detect. */
  readonly podEnvironment: Readonly<Record<string, string>>;
  /** The addresses of load balancers, including health checks, that connect to pods directly, by ingress class. */
  readonly loadBalancerRanges: Readonly<Record<string, readonly string[]>>;
  /** Reports whether gateways of the cluster are GKE's, whose health checks call `/` by default. */
  readonly hasGkeGateways: boolean;
  /** Allows only the pods of one service account to use the bucket with the tables. */
  createIdentity(name: string, account: IdentityArgs): PodIdentity;
  /**
   * Allows the catalog to vend credentials for tables of the bucket.
   *
   * @returns The role that the catalog assumes; undefined if it uses its own identity.
   */
  createVendingRole(identity: PodIdentity): pulumi.Output<string> | undefined;
  /** Creates storage for copies of the catalog's database, which one identity may use and Ray may not. */
  createBackups(identity: PodIdentity): Backups;
  /** Creates a repository for an image that the nodes can pull; undefined if the stack has no registry. */
  createImageRepository(image: string): ImageRepository | undefined;
  /** Returns the name under which nodes pull a public image, which is a cached copy if the stack has a cache. */
  cachedImage(image: string): pulumi.Input<string>;
}

export type ClusterAccess = {
  readonly clusterName: pulumi.Input<string>;
  readonly configMethod: "LOCAL" | "EKS_AUTH" | "GKE_AUTH";
  readonly kubeContext?: string | undefined;
  readonly region?: string | undefined;
  readonly project?: string | undefined;
  readonly roleName?: pulumi.Input<string> | undefined;
  readonly kubeconfig?: pulumi.Output<string> | undefined;
  readonly kubernetesVersion?: pulumi.Input<string> | undefined;
};

export type ClusterSubject = { readonly kind: "User" | "Group"; readonly name: pulumi.Input<string> };

export interface TeamClientArgs {
  /** The principals of the team, in the form of `clientPrincipals`. */
  readonly principals: readonly string[];
  /** The folder in the bucket, with a trailing slash. */
  readonly folder: string;
}

export interface TeamClient {
  readonly clients: readonly ClusterSubject[];
  /** The role that clients assume on AWS. */
  readonly roleName: pulumi.Output<string> | undefined;
}

/** The service account of pods, and what they use of the bucket. */
export interface IdentityArgs extends ServiceAccountName {
  /** The folder of the bucket, with a trailing slash; the whole bucket when absent. */
  readonly folder?: string;
  /** `vended`: none, because the catalog hands out credentials; `direct` when absent. */
  readonly bucketAccess?: BucketAccess;
  /** The annotations of the service account, where the stack creates no identities. */
  readonly annotations?: Readonly<Record<string, string>>;
}

export type BucketAccess = "direct" | "vended";

export interface ServiceAccountName {
  readonly namespace: string;
  readonly name: string;
}

/** The cloud identity of the pods of a service account. */
export interface PodIdentity {
  /** The annotations that assign the identity to the service account. */
  readonly annotations: pulumi.Output<Record<string, string>>;
  /** The name of the role on EKS or the e-mail address of the account on GKE; empty on an existing cluster. */
  readonly principal: pulumi.Output<string>;
}

export interface Backups {
  readonly uri: pulumi.Output<string>;
  /** The region of the bucket on AWS. */
  readonly region: string | undefined;
}

/** A PostgreSQL database for the catalog. */
export interface Database {
  /** The URL, which is a secret. */
  readonly url: pulumi.Input<string>;
  /** The name of the snapshot that outlives the stack; undefined without one or if the cloud chooses the name. */
  readonly finalSnapshot?: pulumi.Output<string> | undefined;
}

/** The repository for an image that the stack builds. */
export interface ImageRepository {
  /** The name without a tag. */
  readonly name: pulumi.Output<string>;
  /** The credentials of the push; undefined where Docker has its own. */
  readonly registry:
    | {
        readonly address: pulumi.Input<string>;
        readonly username: pulumi.Input<string>;
        readonly password: pulumi.Output<string>;
      }
    | undefined;
}
