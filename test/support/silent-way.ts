import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy that can drop all data silently. */
export interface SilentWay extends AsyncDisposable {
  readonly port: number;
  /** Drops all further data of the open connections. */
  fallSilent(): void;
}

export async function startSilentWay(to: { readonly host: string; readonly port: number }): Promise<SilentWay> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(to);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    fallSilent: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
