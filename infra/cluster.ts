import type * as pulumi from "@pulumi/pulumi";
import type { ClusterProvider } from "./components/cluster-provider.ts";
import type { Architecture } from "./machines.ts";

/**
 * A Kubernetes cluster as the platform and the catalog need it, whatever it runs on. The
 * components `GkeCluster`, `EksCluster` and `ExistingCluster` are the three of them.
 */
export interface Cluster extends pulumi.ComponentResource {
  /** Whether the stack made it: nothing else runs on it then. */
  readonly isOwn: boolean;
  readonly kubernetes: ClusterProvider;
  /** How a client finds the cluster and signs in to it; outputs of the stack. */
  readonly access: ClusterAccess;
  /**
   * Of the catalog's volume; the cluster's default when undefined. It is no output: a class that is replaced would have
   * the volume replaced with it.
   */
  readonly storageClass: string | undefined;
  /** Labels of the nodes for controllers and the catalog; any node when empty. */
  readonly coreSelector: Readonly<Record<string, string>>;
  /** Of those nodes: for which images are built. */
  readonly architecture: Architecture;
  /** Principals that may make Ray clusters, as subjects of a role binding. */
  readonly clients: readonly ClusterSubject[];
  /** Nodes and what is on them: what has to be there before pods can run, and must go after them. */
  readonly nodes: readonly pulumi.Resource[];
  readonly services: CloudServices;
  /** Lets the named principals make Ray clusters for a team, and use its folder of the bucket. */
  createTeamClient(name: string, team: TeamClientArgs): TeamClient;
}

/** What a cluster has besides machines, from its cloud or its operator: a bucket, identities of pods, a registry. */
export interface CloudServices {
  /** Where the tables are. */
  readonly bucketUri: pulumi.Output<string>;
  /** Variables that pods need to use the bucket: what an object store's library cannot find out by itself. */
  readonly podEnvironment: Readonly<Record<string, string>>;
  /** From where load balancers call pods themselves, their health checks too, by the class of an ingress. */
  readonly loadBalancerRanges: Readonly<Record<string, readonly string[]>>;
  /** Whether gateways of the cluster are GKE's, whose health checks call `/` unless a policy says otherwise. */
  readonly hasGkeGateways: boolean;
  /** Lets pods of one service account, and no others, use the bucket with the tables. */
  createIdentity(name: string, account: IdentityArgs): PodIdentity;
  /**
   * Lets the catalog hand out credentials for tables of the bucket.
   *
   * @returns The role that it assumes for that; undefined where it uses its own.
   */
  createVendingRole(identity: PodIdentity): pulumi.Output<string> | undefined;
  /** A place for copies of the catalog's database, which one identity may use, and Ray may not. */
  createBackups(identity: PodIdentity): Backups;
  /** A place for an image of this name that the nodes can pull from; undefined where the stack has none. */
  createImageRepository(image: string): ImageRepository | undefined;
  /** The name under which nodes pull a public image: that of a copy nearby where the stack keeps some. */
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
  readonly principals: readonly string[];
  /** In the bucket, ending in a slash. */
  readonly folder: string;
}

export interface TeamClient {
  readonly clients: readonly ClusterSubject[];
  /** The role to take, on AWS. */
  readonly roleName: pulumi.Output<string> | undefined;
}

/** The identity of pods, and their part of the bucket: a folder, ending in a slash, or all of it when absent. */
export interface IdentityArgs extends ServiceAccountName {
  readonly folder?: string;
  /** Of the service account, where the stack makes no identities. */
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface ServiceAccountName {
  readonly namespace: string;
  readonly name: string;
}

/** What pods of a service account are to the cloud. */
export interface PodIdentity {
  /** They make it so on the service account. */
  readonly annotations: pulumi.Output<Record<string, string>>;
  /** The name of the role on EKS, the e-mail address of the account on GKE; empty on an existing cluster. */
  readonly principal: pulumi.Output<string>;
}

export interface Backups {
  readonly uri: pulumi.Output<string>;
  /** Of the bucket, on AWS. */
  readonly region: string | undefined;
}

/** A PostgreSQL database for the catalog. */
export interface Database {
  /** Kept as a secret. */
  readonly url: pulumi.Input<string>;
  /** The name of the snapshot that outlives the stack; undefined without one, or where the cloud names it. */
  readonly finalSnapshot?: pulumi.Output<string> | undefined;
}

/** Where the stack pushes an image that it builds. */
export interface ImageRepository {
  /** Without a tag. */
  readonly name: pulumi.Output<string>;
  readonly registry: {
    readonly address: pulumi.Input<string>;
    readonly username: pulumi.Input<string>;
    readonly password: pulumi.Output<string>;
  };
}
