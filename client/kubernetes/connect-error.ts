/** Signing in to Kubernetes failed. The message says what to do about it. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
}
