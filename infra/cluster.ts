import type * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";

/**
 * A Kubernetes cluster as the platform and the catalog need it, whatever it runs on. The
 * components `GkeCluster`, `EksCluster` and `ExistingCluster` are the three of them.
 */
export interface Cluster extends pulumi.ComponentResource {
  readonly kubernetes: kubernetes.Provider;
  /** How a client finds the cluster and signs in to it; outputs of the stack. */
  readonly access: ClusterAccess;
  /** Where the tables are. */
  readonly bucketUri: pulumi.Output<string>;
  /** Of the catalog's volume; the cluster's default when undefined. */
  readonly storageClass: pulumi.Input<string> | undefined;
  /** Labels of the nodes for controllers and the catalog; any node when empty. */
  readonly coreSelector: Readonly<Record<string, string>>;
  /** Who may make Ray clusters, as subjects of a role binding. */
  readonly clients: readonly ClusterSubject[];
  /** Nodes and what is on them: what has to be there before pods can run, and must go after them. */
  readonly nodes: readonly pulumi.Resource[];
  /**
   * Lets one service account of the namespace, and no other, use the bucket.
   *
   * @returns The annotations that make it so on the service account.
   */
  bucketIdentity(name: string, serviceAccount: string): pulumi.Output<Record<string, string>>;
  /**
   * Lets the catalog hand out credentials for tables of the bucket.
   *
   * @param identity The annotations of the catalog's service account.
   * @returns The role that it assumes for that; undefined where it uses its own.
   */
  vendingRole(identity: pulumi.Output<Record<string, string>>): pulumi.Output<string> | undefined;
  /** A registry for images that the nodes can pull from; undefined where the stack has none. */
  imageRepository(): ImageRepository | undefined;
  /** A PostgreSQL of the cloud. @returns Its URL, a secret. */
  database(args: { readonly replicas: number }): pulumi.Output<string>;
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

/** Where the stack pushes the image that it builds. */
export interface ImageRepository {
  /** Without a tag. */
  readonly name: pulumi.Output<string>;
  readonly registry: {
    readonly address: pulumi.Input<string>;
    readonly username: pulumi.Input<string>;
    readonly password: pulumi.Output<string>;
  };
}
