/** Connections without a complete request, together with well-behaved clients. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { measure } from "../bench/load.ts";
import { arrowStream, films } from "../support/rows.ts";
import { kept } from "./kept.ts";
import { startWatchedService, type WatchedService } from "./service.ts";

let service: WatchedService;
const start = async () => {
  service = await startWatchedService();
};
const stop = () => service[Symbol.asyncDispose]();

const describeKept = `/v1/namespace/${kept.namespace}/describe`;

interface Connection {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  /** Returns the answer so far. */
  readonly answer: () => string;
}

/** Opens a connection, sends bytes and keeps it open. */
async function open(bytes: string | Uint8Array, { url } = service): Promise<Connection> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let answer = "";
  socket
    .on("error", () => {})
    .on("data", (chunk) => {
      answer += chunk;
    });
  await once(socket, "connect");
  socket.write(bytes);
  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
  });
  return { socket, closed, answer: () => answer };
}

/** Opens a connection and sends bytes after a first answer, because the kernel accepts waiting connections in any order. */
async function openAccepted(bytes: string): Promise<Connection> {
  const connection = await open("GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n");
  await once(connection.socket, "data");
  connection.socket.write(bytes);
  return connection;
}

function head(path: string, length: number, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ host: "a", ...headers, "content-length": `${length}` });
  return `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

describe("a thousand connections that send a byte a second", () => {
  beforeEach(start);
  afterEach(stop);

  const seconds = 5;
  /** A busy machine is slow at times, so one good attempt suffices. */
  const attempts = 3;

  test.each(["headers", "body"])(
    "leave the others as fast as they were when they are slow with their %s",
    async (kind) => {
      const target = { url: service.url, pid: service.pid, headers: { "x-api-key": service.keys.admin } };
      const request = { method: "POST", path: describeKept, body: "{}" } as const;
      const load = async () => (await measure(target, { connections: 8, seconds }, () => request)).p99Ms;
      await load();
      const ratios: number[] = [];
      for (let attempt = 0; attempt < attempts && !ratios.some((ratio) => ratio <= 2); attempt += 1) {
        const alone = await load();
        const slow = fork(join(import.meta.dirname, "slow-clients.ts"), [service.url, "1000", kind]);
        await once(slow, "message");
        const beside = await load().finally(() => slow.kill());
        process.stderr.write(`slow ${kind}: p99 ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside them\n`);
        ratios.push(beside / alone);
      }
      expect(Math.min(...ratios), "p99 beside them, by p99 alone").toBeLessThanOrEqual(2);
    },
  );
});

describe("a connection", () => {
  beforeAll(start);
  afterAll(stop);

  // These tests wait for timeouts of the service, so they wait together.
  test.concurrent("is closed with a 400 when its headers do not arrive in ten seconds", async () => {
    const { closed, answer } = await open("POST / HTTP/1.1\r\nhost: a\r\nx-a: ");
    await closed;
    expect(answer()).toMatch(/^HTTP\/1.1 400 [\s\S]*the request did not arrive in time/);
  });

  test.concurrent("is closed when it sends no data", async () => {
    await (await open("")).closed;
  });

  test.concurrent("is closed when its body arrives too slowly, with any credential", async () => {
    const { socket, closed, answer } = await open(head(describeKept, 60_000, { "x-api-key": service.keys.admin }));
    const dripping = setInterval(() => socket.write(" "), 100);
    await closed;
    clearInterval(dripping);
    expect(answer()).toMatch(/^HTTP\/1.1 400 [\s\S]*the request did not arrive in time/);
  });

  test.concurrent("stays open while its rows arrive slowly", async () => {
    const path = `/v1/table/${kept.namespace}%24slow/create`;
    const { socket, answer } = await open(head(path, 60_000, { "x-api-key": service.keys.admin }));
    const stranger = await open(head(path, 60_000));
    const rows = arrowStream(films).values();
    const dripping = setInterval(() => socket.write(Buffer.of(rows.next().value ?? 0)), 100);
    await stranger.closed;
    await service.send({ method: "GET", path: "/health/live" });
    clearInterval(dripping);
    expect([socket.destroyed, answer()]).toEqual([false, ""]);
    socket.destroy();
  });

  // The many connections of this test would evict those of the others.
  test("is closed when it has been idle the longest and its address has too many, and a client that sends a request is answered", async () => {
    const [count, max] = [600, 512];
    const idle: Connection[] = [];
    for (let index = 0; index < count; index += 1) idle.push(await openAccepted("POST / HTTP/1.1\r\n"));
    const closed = () => idle.flatMap(({ socket }, index) => (socket.destroyed ? [index] : []));
    await vi.waitFor(() => expect(closed().length).toBeGreaterThanOrEqual(count - max), { timeout: 10_000 });
    expect((await service.send({ method: "GET", path: "/health/live" })).status).toBe(200);
    expect(closed().filter((index) => index >= 100)).toEqual([]);
    expect(await evictedConnections()).toBeGreaterThanOrEqual(count - max);
    for (const { socket } of idle) socket.destroy();
  });
});

async function evictedConnections(): Promise<number> {
  const { text } = await service.send({ method: "GET", path: "/metrics" });
  return Number(/^tiltyard_evicted_connections_total (\d+)/m.exec(text)?.[1]);
}

type Caller = readonly [string, (keys: WatchedService["keys"]) => Readonly<Record<string, string>>, string];

describe("a hundred bodies of 4 MiB without their last byte", () => {
  const bytes = 4 * 1024 * 1024;
  const path = "/v1/table/batch-commit";
  // V8 collects discarded bodies only when about 64 MiB are outside of its heap. Keeping all bodies would need 400 MiB.
  const residentGrowthMaxMiB = 200;

  test.concurrent.each([
    ["no credential", () => ({}), "413"],
    ["a reader's key", ({ reader }) => ({ "x-api-key": reader }), "403"],
    ["an admin's key", ({ admin }) => ({ "x-api-key": admin }), "503"],
  ] satisfies readonly Caller[])(
    "use little memory with %s, and are refused or closed",
    async (_, headersOf, status) => {
      await using watched = await startWatchedService();
      const headers = headersOf(watched.keys);
      const before = watched.residentMiB();
      const body = Buffer.alloc(bytes - 1, " ");
      const all: Connection[] = [];
      for (let index = 0; index < 100; index += 1) {
        const each = await open(head(path, bytes, headers), watched);
        each.socket.write(body);
        all.push(each);
      }
      const closed = Promise.all(all.map((each) => each.closed));
      let most = 0;
      const looking = setInterval(() => {
        most = Math.max(most, watched.residentMiB());
      }, 50);
      await closed;
      clearInterval(looking);
      expect(most - before).toBeLessThan(residentGrowthMaxMiB);
      const answers = all.map(({ answer }) => answer().slice(9, 12));
      expect(answers.filter((each) => each === status).length).toBeGreaterThan(80);
      expect(all.find(({ answer }) => answer().slice(9, 12) === "503")?.answer() ?? "retry-after: 1").toContain(
        "retry-after: 1",
      );
      expect((await watched.send({ method: "POST", path: describeKept, headers, body: "{}" })).status).toBe(
        status === "413" ? 401 : 200,
      );
    },
  );
});
