import { type AddressInfo, createServer, type Socket } from "node:net";
import { type KubeConfig, PortForward } from "@kubernetes/client-node";

/** A port of this machine that is forwarded to a pod. */
export interface Forwarding extends AsyncDisposable {
  readonly port: number;
}

/**
 * Forwards a port of the loopback interface to a port of a pod. The pod is looked up for each connection, because it
 * may be replaced. The caller must reconnect when a connection breaks.
 *
 * @param findPod Returns the name of the current pod; undefined without one.
 */
export async function forwardPort(
  config: KubeConfig,
  namespace: string,
  findPod: () => Promise<string | undefined>,
  podPort: number,
): Promise<Forwarding> {
  const sockets = new Set<Socket>();
  const forward = new PortForward(config, true);
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    forwardToPod(socket).catch(() => socket.destroy());
  });

  async function forwardToPod(socket: Socket): Promise<void> {
    const pod = await findPod();
    if (pod === undefined) return void socket.destroy();
    const tunnel = await forward.portForward(namespace, pod, [podPort], socket, null, socket);
    const webSocket = typeof tunnel === "function" ? tunnel() : tunnel;
    socket.on("close", () => webSocket?.close());
    webSocket?.on("close", () => socket.destroy());
    webSocket?.on("error", () => socket.destroy());
  }

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
