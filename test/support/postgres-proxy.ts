import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A proxy for PostgreSQL that a test can interrupt at a commit. */
export interface PostgresProxy extends AsyncDisposable {
  readonly port: number;
  /** Breaks all connections when the server answers the next commit of changes to a table, and rejects new ones. */
  breakAtCommitOf(table: string): void;
  /** Accepts connections again. */
  repair(): void;
}

export async function startPostgresProxy(to: { readonly host: string; readonly port: number }): Promise<PostgresProxy> {
  const sockets = new Set<Socket>();
  let change: string | undefined;
  let isBroken = false;
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((near) => {
    const far = connect(to);
    let hasChanged = false;
    let isCommitting = false;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket
        .on("error", () => {})
        .on("close", () => {
          sockets.delete(socket);
          near.destroy();
          far.destroy();
        });
    }
    near.on("data", (data) => {
      const text = data.toString("latin1");
      hasChanged ||= change !== undefined && text.includes(change);
      isCommitting = hasChanged && /\bcommit\b/.test(text);
      far.write(data);
    });
    far.on("data", (data) => {
      isBroken ||= isCommitting;
      if (isBroken) end();
      else near.write(data);
    });
    if (isBroken) near.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    breakAtCommitOf: (table) => {
      change = `insert into "${table}"`;
    },
    repair: () => {
      change = undefined;
      isBroken = false;
    },
    [Symbol.asyncDispose]: async () => {
      end();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
