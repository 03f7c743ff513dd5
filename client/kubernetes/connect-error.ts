/** An error of signing in to Kubernetes. The message contains the recommended action. */
export class ConnectError extends Error {
  override readonly name: string = "ConnectError";
}

/** The lack of a kubeconfig with a cluster. */
export class NoKubeconfigError extends ConnectError {
  override readonly name = "NoKubeconfigError";

  constructor() {
    super("no kubeconfig names a cluster: set KUBECONFIG, or sign in with your cloud's command");
  }
}
