import { KubeConfig } from "@kubernetes/client-node";
import { withRequestTimeout } from "@tiltyard/platform";
import { messageOf } from "@tiltyard/protocol";
import { ConnectError, NoKubeconfigError } from "./connect-error.ts";

/** The location of a Kubernetes cluster and the method of signing in. */
export interface ConnectParameters {
  /** The method. `LOCAL` is the kubeconfig of the user; `IN_CLUSTER` is the service account of the current pod. */
  readonly configMethod: "LOCAL" | "IN_CLUSTER" | "EKS_AUTH" | "GKE_AUTH";
  readonly clusterName?: string | undefined;
  readonly region?: string | undefined;
  readonly project?: string | undefined;
  /** The role to assume with `EKS_AUTH`: its ARN, or its name in the account of the caller. */
  readonly roleName?: string | undefined;
  /** The context of the kubeconfig with `LOCAL`; the current one when absent. */
  readonly kubeContext?: string | undefined;
}

/**
 * Finds the cluster. Credentials are renewed before they expire, as long as the configuration is in use. The libraries
 * of a cloud are loaded only for that cloud.
 *
 * @throws ConnectError
 */
export async function connect(parameters: ConnectParameters): Promise<KubeConfig> {
  return withRequestTimeout(await configOf(parameters));
}

async function configOf(parameters: ConnectParameters): Promise<KubeConfig> {
  const { configMethod, clusterName = "", region = "", roleName, project } = parameters;
  switch (configMethod) {
    case "LOCAL":
      return connectLocal(parameters.kubeContext);
    case "IN_CLUSTER":
      return connectInCluster();
    case "EKS_AUTH":
      return (await import("./eks.ts")).connectEks({ clusterName, region, roleName });
    case "GKE_AUTH":
      return (await import("./gke.ts")).connectGke({ clusterName, region, project });
  }
}

/** The values that the library sets without a kubeconfig. */
const placeholder = { context: "loaded-context", server: "http://localhost:8080" };

function connectLocal(context: string | undefined): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromDefault();
  } catch (error) {
    const reason = messageOf(error);
    throw new ConnectError(`the kubeconfig cannot be read: ${reason}; KUBECONFIG names another`, { cause: error });
  }
  if (context !== undefined) {
    const known = config.getContexts().map((each) => each.name);
    if (!known.includes(context))
      throw new ConnectError(`the kubeconfig has no context ${context}; it has: ${known.join(", ") || "none"}`);
    config.setCurrentContext(context);
  }
  const server = config.getCurrentCluster()?.server;
  if (server === undefined || (server === placeholder.server && config.getCurrentContext() === placeholder.context))
    throw new NoKubeconfigError();
  return config;
}

function connectInCluster(): KubeConfig {
  const notInCluster = "this process does not run in a pod with a service account. Use another config_method";
  const config = new KubeConfig();
  try {
    config.loadFromCluster();
  } catch (error) {
    throw new ConnectError(notInCluster, { cause: error });
  }
  // Outside a pod, the variables with the address are missing.
  if (config.getCurrentCluster()?.server.includes("undefined")) throw new ConnectError(notInCluster);
  return config;
}
