/** Signing in to Kubernetes that did not work. The message says what to do about it. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
}
