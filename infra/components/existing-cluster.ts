import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { Backups, Cluster, ClusterAccess, ClusterSubject, PodIdentity } from "../cluster.ts";

export interface ExistingClusterArgs {
  /** Itself, or the path of a file; the user's own when absent. */
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  /** What outputs call the cluster. */
  readonly clusterName: string;
  /** Where the tables are: `s3://...`, `gs://...` or `file:///...`. */
  readonly bucket: string;
  /** Where Litestream copies the catalog's database to, if it does: a bucket that Ray cannot use. */
  readonly backups?: string | undefined;
  /** Who may make Ray clusters: `user:NAME` or `group:NAME`. */
  readonly clientPrincipals?: readonly string[];
  /** What the cluster's own way of giving pods an identity asks for. */
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
}

/** A cluster that is there already: kind, k3s, on-premises, or a cloud's that somebody else keeps. */
export class ExistingCluster extends pulumi.ComponentResource implements Cluster {
  readonly isOwn = false;
  readonly kubernetes: kubernetes.Provider;
  readonly access: ClusterAccess;
  readonly bucketUri: pulumi.Output<string>;
  readonly storageClass = undefined;
  readonly coreSelector = {};
  readonly podEnvironment = {};
  readonly loadBalancerRanges = {};
  readonly clients: readonly ClusterSubject[];
  readonly nodes = [];
  readonly #annotations: Readonly<Record<string, string>>;
  readonly #backups: string;

  constructor(name: string, args: ExistingClusterArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:ExistingCluster", name, {}, options);
    const { clusterName, context, bucket, backups = "", clientPrincipals = [], serviceAccountAnnotations = {} } = args;
    this.kubernetes = createProvider(name, args, this);
    this.access = { clusterName, configMethod: "LOCAL", kubeContext: context };
    this.bucketUri = pulumi.output(bucket);
    this.clients = clientPrincipals.map(toSubject);
    this.#annotations = serviceAccountAnnotations;
    this.#backups = backups;
    this.registerOutputs();
  }

  createIdentity(): PodIdentity {
    return { annotations: pulumi.output({ ...this.#annotations }), principal: pulumi.output("") };
  }

  createVendingRole(): undefined {}

  createBackups(): Backups {
    return { uri: pulumi.output(this.#backups), region: undefined };
  }

  createImageRepository(): undefined {}

  createDatabase(): never {
    throw new pulumi.RunError("a stack on an existing cluster makes no database");
  }
}

function createProvider(name: string, { kubeconfig, context }: ExistingClusterArgs, parent: pulumi.Resource) {
  return new kubernetes.Provider(
    `${name}-kubernetes`,
    {
      ...(kubeconfig !== undefined && { kubeconfig: pulumi.secret(contentOf(kubeconfig)) }),
      ...(context !== undefined && { context }),
      enableServerSideApply: true,
    },
    { parent },
  );
}

/** A kubeconfig may be given itself, or by its path. */
function contentOf(kubeconfig: string): string {
  const path = resolve(kubeconfig);
  return existsSync(path) ? readFileSync(path, "utf8") : kubeconfig;
}

function toSubject(principal: string): ClusterSubject {
  const [kind, name] = [principal.slice(0, principal.indexOf(":")), principal.slice(principal.indexOf(":") + 1)];
  return { kind: kind === "group" ? "Group" : "User", name };
}
