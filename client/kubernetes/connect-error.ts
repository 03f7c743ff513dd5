/** Signing in to Kubernetes failed. The message says what to do about it. */
export class ConnectError extends Error {
  override readonly name: string = "ConnectError";
}

/** No kubeconfig names a cluster. */
export class NoKubeconfigError extends ConnectError {
  override readonly name = "NoKubeconfigError";

  constructor() {
    super("no kubeconfig names a cluster: set KUBECONFIG, or sign in with your cloud's command");
  }
}
