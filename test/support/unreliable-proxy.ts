import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A proxy whose connections a test can break. */
export interface UnreliableProxy extends AsyncDisposable {
  readonly url: string;
  /** The number of next requests that reach the server and lose their answers. */
  loseAnswers: number;
  /** The number of broken connections. */
  readonly broken: number;
  breakAll(): void;
}

/** @param url The server, e.g. `http://127.0.0.1:8265`. */
export async function startUnreliableProxy(url: string): Promise<UnreliableProxy> {
  const { hostname, port } = new URL(url);
  const open = new Set<Socket>();
  let [broken, loseAnswers] = [0, 0];
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    const end = () => {
      open.delete(client);
      client.destroy();
      upstream.destroy();
    };
    open.add(client);
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
    client.pipe(upstream);
    upstream.on("data", (data) => {
      if (loseAnswers === 0) return void client.write(data);
      loseAnswers--;
      broken++;
      end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    set loseAnswers(count: number) {
      loseAnswers = count;
    },
    get broken() {
      return broken;
    },
    breakAll: () => {
      broken += open.size;
      for (const socket of open) socket.destroy();
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
