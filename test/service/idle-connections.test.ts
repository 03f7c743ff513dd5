/** Connections without a request, whose number per address is limited. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, expect, test } from "vitest";
import { useCatalog } from "../support/catalog.ts";

const most = 8;
const catalog = useCatalog({ TILTYARD_IDLE_CONNECTIONS_PER_ADDRESS: `${most}` });
const sockets: Socket[] = [];
afterAll(() => {
  for (const socket of sockets) socket.destroy();
});

function open(): Socket {
  const { hostname, port } = new URL(catalog.url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  sockets.push(socket);
  return socket;
}

/** Resolves with the next chunk; "" if the connection closes instead. */
async function next(socket: Socket): Promise<string> {
  const [chunk] = await Promise.race([once(socket, "data"), once(socket, "close").then(() => [""])]);
  return String(chunk);
}

test.each([
  [" that holds the service up", 200],
  ["", 0],
])("a client between two requests is answered, though as many connections arrive in a rush%s", async (_, heldMs) => {
  const client = open();
  const text = "GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n";
  client.write(text);
  expect(await next(client)).toContain("HTTP/1.1 20");
  const answer = next(client);
  const rush = Array.from({ length: 2 * most }, open);
  const last = open();
  last.write(text);
  // All connections are accepted by then.
  expect(await next(last)).toContain("HTTP/1.1 20");
  client.write(text);
  const end = performance.now() + heldMs;
  while (performance.now() < end);
  expect(await answer).toContain("HTTP/1.1 20");
  for (const socket of [client, last, ...rush]) socket.destroy();
});

test.each([
  ["without a body", () => "GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n"],
  [
    "with a body",
    () =>
      `POST /v1/namespace/%24/exists HTTP/1.1\r\nhost: a\r\nx-api-key: ${catalog.adminKey}\r\ncontent-length: 2\r\n\r\n{}`,
  ],
])(
  "requests %s that arrived while the service was busy are answered, though as many connections arrived",
  async (_, text) => {
    const idle = await Promise.all(
      Array.from({ length: most }, async () => {
        const socket = open();
        socket.write(text());
        expect(await next(socket)).toContain("HTTP/1.1 20");
        return socket;
      }),
    );
    const crowd = Array.from({ length: most }, open);
    // The new connections exist when the requests are sent, and the service sees both in one turn of its event loop.
    const answers = await new Promise<string[]>((resolve) =>
      process.nextTick(() => {
        for (const socket of idle) socket.write(text());
        resolve(Promise.all(idle.map(next)));
      }),
    );
    expect(answers.map((answer) => answer.slice(0, 11))).toEqual(Array(most).fill("HTTP/1.1 20"));
    for (const socket of [...idle, ...crowd]) socket.destroy();
  },
);

test("the longest idle ones are closed beyond the limit", async () => {
  const first = await Promise.all(
    Array.from({ length: most }, async () => {
      const socket = open();
      socket.write("GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n");
      expect(await next(socket)).toContain("HTTP/1.1 20");
      return socket;
    }),
  );
  const closed = Promise.all(first.map((socket) => once(socket, "close")));
  const then = Array.from({ length: most }, open);
  await closed;
  expect(then.filter(({ destroyed }) => destroyed)).toEqual([]);
  for (const socket of then) socket.destroy();
});

test("keeps an idle connection longer than the pools of clients and of load balancers do", async () => {
  const client = open();
  client.write("GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n");
  const [, seconds = "0"] = /^keep-alive: timeout=(\d+)/im.exec(await next(client)) ?? [];
  // Google's load balancers keep idle connections for 600 seconds.
  expect(Number(seconds)).toBeGreaterThan(600);
  client.destroy();
});
