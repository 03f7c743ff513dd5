import * as pulumi from "@pulumi/pulumi";
import type { CloudServices, Cluster, ClusterAccess, ClusterSubject, TeamClient, TeamClientArgs } from "../cluster.ts";
import type { Architecture } from "../machines.ts";
import { withArchitecture } from "../node-pools.ts";
import { kubeconfigText } from "../settings/kubeconfig-rules.ts";
import { ClusterProvider } from "./cluster-provider.ts";
import { componentName } from "./component-name.ts";
import { OwnServices, type OwnServicesArgs } from "./own-services.ts";

interface AnyExistingClusterArgs {
  /** The content of a kubeconfig or the path of a file; the default kubeconfig of the user when absent. */
  readonly kubeconfig?: pulumi.Input<string> | undefined;
  /** The context of the kubeconfig; its current one when absent. */
  readonly context?: string | undefined;
  /** The name of the cluster in outputs. */
  readonly clusterName: pulumi.Input<string>;
  /** The principals that may create Ray clusters: `user:NAME` or `group:NAME`. */
  readonly clientPrincipals?: readonly string[];
  /** The architecture of its nodes; `amd64` when absent. */
  readonly architecture?: Architecture;
  /** The deployment of another component of the program, which owns the objects; a new one when absent. */
  readonly deployment?: pulumi.Output<string> | undefined;
}

/**
 * The arguments of a cluster, with the services of its operator, or with a function that creates cloud services as
 * children of this component.
 */
export type ExistingClusterArgs = AnyExistingClusterArgs &
  (OwnServicesArgs | { readonly services: (parent: pulumi.Resource) => CloudServices });

/** An existing cluster: kind, k3s, on-premises, or a cluster of a cloud outside the stack. */
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
    super("tiltyard:infra:ExistingCluster", componentName(name), {}, options);
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

function createProvider(name: string, args: AnyExistingClusterArgs, parent: pulumi.Resource) {
  const { kubeconfig, context, deployment } = args;
  const text =
    typeof kubeconfig === "string"
      ? kubeconfigText(kubeconfig)
      : kubeconfig && pulumi.output(kubeconfig).apply(kubeconfigText);
  return new ClusterProvider(`${name}-kubernetes`, { kubeconfig: text, context, deployment }, { parent });
}

/** @throws RunError if the principal has another form. */
function toSubject(principal: string): ClusterSubject {
  const [, kind, name] = /^(user|group):(.+)$/.exec(principal) ?? [];
  if (name === undefined)
    throw new pulumi.RunError(`clientPrincipals: must be user:NAME or group:NAME, not ${principal}`);
  return { kind: kind === "group" ? "Group" : "User", name };
}
