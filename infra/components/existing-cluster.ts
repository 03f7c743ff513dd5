import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import type { CloudServices, Cluster, ClusterAccess, ClusterSubject, TeamClient, TeamClientArgs } from "../cluster.ts";
import type { Architecture } from "../machines.ts";
import { withArchitecture } from "../node-pools.ts";
import { ClusterProvider } from "./cluster-provider.ts";
import { OwnServices, type OwnServicesArgs } from "./own-services.ts";

interface AnyExistingClusterArgs {
  /** Itself, or the path of a file; the user's own when absent. */
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  /** What outputs call the cluster. */
  readonly clusterName: string;
  /** Principals that may make Ray clusters: `user:NAME` or `group:NAME`. */
  readonly clientPrincipals?: readonly string[];
  /** Of its nodes; `amd64` when absent. */
  readonly architecture?: Architecture;
}

/** What the cluster has of its keeper, or what makes it have more: the resources of a cloud, below this one. */
export type ExistingClusterArgs = AnyExistingClusterArgs &
  (OwnServicesArgs | { readonly services: (parent: pulumi.Resource) => CloudServices });

/** A cluster that is there already: kind, k3s, on-premises, or one of a cloud outside of the stack. */
export class ExistingCluster extends pulumi.ComponentResource implements Cluster {
  readonly isOwn = false;
  readonly kubernetes: ClusterProvider;
  readonly access: ClusterAccess;
  readonly services: CloudServices;
  readonly storageClass = undefined;
  readonly coreSelector: Readonly<Record<string, string>>;
  readonly architecture: Architecture;
  readonly clients: readonly ClusterSubject[];
  readonly nodes = [];

  constructor(name: string, args: ExistingClusterArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:ExistingCluster", name, {}, options);
    const { clusterName, context, clientPrincipals = [], architecture = "amd64" } = args;
    this.services = "services" in args ? args.services(this) : new OwnServices(args);
    this.kubernetes = createProvider(name, args, this);
    this.access = { clusterName, configMethod: "LOCAL", kubeContext: context };
    this.architecture = architecture;
    this.coreSelector = withArchitecture({}, architecture);
    this.clients = clientPrincipals.map(toSubject);
    this.registerOutputs();
  }

  createTeamClient(_name: string, { principals }: TeamClientArgs): TeamClient {
    return { clients: principals.map(toSubject), roleName: undefined };
  }
}

function createProvider(name: string, { kubeconfig, context }: AnyExistingClusterArgs, parent: pulumi.Resource) {
  const text = kubeconfig === undefined ? undefined : contentOf(kubeconfig);
  return new ClusterProvider(`${name}-kubernetes`, { kubeconfig: text, context }, { parent });
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
