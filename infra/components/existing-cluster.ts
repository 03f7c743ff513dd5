import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { Cluster, ClusterAccess, ClusterSubject } from "../cluster.ts";
import type { StackConfig } from "../config.ts";

/** A cluster that is there already: kind, k3s, on-premises, or a cloud's that somebody else keeps. */
export class ExistingCluster extends pulumi.ComponentResource implements Cluster {
  readonly kubernetes: kubernetes.Provider;
  readonly access: ClusterAccess;
  readonly bucketUri: pulumi.Output<string>;
  readonly storageClass = undefined;
  readonly coreSelector = {};
  readonly clients: readonly ClusterSubject[];
  readonly nodes = [];
  readonly #annotations: Readonly<Record<string, string>>;

  constructor(name: string, config: StackConfig, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:ExistingCluster", name, {}, options);
    this.kubernetes = createProvider(this, name, config);
    this.access = { clusterName: config.clusterName, configMethod: "LOCAL", kubeContext: config.context };
    this.bucketUri = pulumi.output(config.bucket ?? "");
    this.clients = config.clientPrincipals.map(toSubject);
    this.#annotations = config.serviceAccountAnnotations;
    this.registerOutputs();
  }

  /** What the cluster's own way of giving pods an identity asks for is a setting of the stack. */
  bucketIdentity(): pulumi.Output<Record<string, string>> {
    return pulumi.output({ ...this.#annotations });
  }

  vendingRole(): undefined {}

  imageRepository(): undefined {}

  database(): never {
    throw new pulumi.RunError("a stack on an existing cluster makes no database");
  }
}

function createProvider(parent: ExistingCluster, name: string, { kubeconfig, context }: StackConfig) {
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
