import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/**
 * The time for which a cloud store keeps idle connections, which is longer than clients do. Node's default of 5 s would
 * end a whole pool at a time.
 */
export const storeKeepAliveMs = 620_000;

/** The faults of a request. */
export const faults = {
  /** The server does not receive the request. */
  refused: "refused",
  /** The proxy answers 500, and the server does not receive the request. */
  failed: "failed",
  /** The server executes the request, and the answer is lost. */
  answerLost: "answerLost",
  /** The server executes the request, and the connection closes in the middle of the answer's body. */
  truncated: "truncated",
  /** The request gets no answer. */
  hangs: "hangs",
} as const;
export type Fault = (typeof faults)[keyof typeof faults];

export interface FaultyProxy extends AsyncDisposable {
  readonly url: string;
  /** The number of requests with each fault. */
  readonly counts: Readonly<Record<Fault, number>>;
  /** Closes the connections of hanging requests. */
  breakHanging(): void;
}

/**
 * A proxy to an HTTP server that injects faults into requests.
 *
 * @param next The fault of the next request; undefined for none.
 */
export async function startFaultyProxy(
  url: string,
  next: (request: IncomingMessage) => Fault | undefined,
): Promise<FaultyProxy> {
  const counts = { refused: 0, failed: 0, answerLost: 0, truncated: 0, hangs: 0 };
  const hanging = new Set<IncomingMessage>();

  function handle(from: IncomingMessage, answer: ServerResponse): void {
    const fault = next(from);
    if (fault !== undefined) counts[fault] += 1;
    if (fault === "refused") return void from.socket.destroy();
    if (fault === "hangs") return void hanging.add(from.resume());
    if (fault === "failed") {
      from.resume().on("end", () => answer.writeHead(500).end());
      return;
    }
    const { method, headers } = from;
    // A signature covers the path, so it stays unchanged.
    const onward = request(url, { method, headers, path: from.url ?? "/" }, (answered) => {
      if (fault === "answerLost") {
        answered.resume().on("end", () => from.socket.destroy());
        return;
      }
      answer.writeHead(answered.statusCode ?? 502, answered.headers);
      if (fault === "truncated") {
        void buffer(answered).then((body) =>
          answer.write(body.subarray(0, Math.ceil(body.length / 2)), () => from.socket.destroy()),
        );
        return;
      }
      answered.pipe(answer);
    });
    onward.on("error", () => from.socket.destroy());
    from.pipe(onward);
  }

  const server = createServer({ keepAliveTimeout: storeKeepAliveMs }, handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    breakHanging: () => {
      for (const { socket } of hanging) socket.destroy();
      hanging.clear();
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
