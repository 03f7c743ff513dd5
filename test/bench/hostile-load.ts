import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { startCommitting } from "./committing.ts";
import { createFolder } from "./folder.ts";
import { type LoadRequest, measure, type Target } from "./load.ts";
import { between, readArguments } from "./options.ts";
import { type ProcessUsage, readUsage } from "./process-usage.ts";
import { startTiltyard } from "./servers.ts";

/**
 * The heap size that Node chooses in a pod with 512 MiB. With a larger heap, garbage is collected later, which
 * resembles a leak.
 */
const podHeap = "--max-old-space-size=256";
const committers = 8;
/** The share of misbehaving connections: one in this number. */
const misbehavingEvery = 10;
const samples = 10;
const bodyBytes = 8 * 1024 * 1024;
const slowByteEveryMs = 100;
const misbehavedForMs = 3_000;
const misbehavingPauseMs = 500;
/**
 * The growth beyond which memory or handles count as a leak. The heap size varies, and some connections may be in
 * progress.
 */
const residentGrowthMax = 1.2;
const handleGrowthMax = 20;
/** The shortest load whose memory is judged. In a shorter one, the heap still grows to its normal size. */
const judgedFromSeconds = 120;
const handlesCloseWithinMs = 30_000;
const handlesLookEveryMs = 100;
/** The duration beyond which a request counts as stuck. */
const stuckMs = 60_000;

const Options = z.object({
  seconds: between(samples, 86_400).default(600),
  connections: between(misbehavingEvery, 10_000).default(200),
});

/**
 * Loads the catalog for a long time: most connections describe a table, some commit, and a tenth of them misbehave.
 * Then the service is stopped under load, and its acknowledged commits are checked.
 *
 * @throws Error if memory grows in a load of two minutes or longer, handles grow, a request is stuck or fails, or a
 *   commit is lost.
 */
export async function measureLoad(args: readonly string[]): Promise<void> {
  const { seconds, connections } = readArguments(args, Options);
  const folder = createFolder();
  const server = await startTiltyard(folder, [podHeap]);
  const committing = await startCommitting(server, folder, committers);

  const handlesBefore = readUsage(server.pid).handles;
  let isOver = false;
  const misbehaving = Array.from({ length: Math.floor(connections / misbehavingEvery) }, async (_, index) => {
    const misbehave = misbehaviours[index % misbehaviours.length];
    while (!isOver) {
      await misbehave?.(server);
      // Node accepts one connection per turn of its event loop, so without a pause the queue of the listening socket fills.
      await sleep(misbehavingPauseMs);
    }
  });
  const describing = connections - misbehaving.length - committers;
  const request: LoadRequest = { method: "POST", path: "/v1/table/t_0/describe", body: "{}" };

  const usages: ProcessUsage[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    const load = { connections: describing, seconds: seconds / samples };
    const measured = await measure(server, load, () => request);
    const usage = readUsage(server.pid);
    usages.push(usage);
    print(
      `${Math.round(measured.requestsPerSecond)} describes/s, p50 ${measured.p50Ms.toFixed(1)} ms, ` +
        `p99 ${measured.p99Ms.toFixed(1)} ms, longest ${measured.longestMs.toFixed(0)} ms; ` +
        `${committing.acknowledged()} commits; ${usage.residentMiB.toFixed(0)} MiB, ${usage.handles} handles`,
    );
    if (measured.longestMs > stuckMs) throw new Error("a request was stuck");
  }
  isOver = true;
  await Promise.all(misbehaving);
  // During the first half, the heap grows to its normal size between collections.
  const [before, after] = [usages[samples / 2 - 1], usages.at(-1)];
  if (after === undefined || before === undefined) throw new Error("the service has too few samples");
  if (seconds < judgedFromSeconds) print(`the memory is not judged in less than ${judgedFromSeconds} s`);
  else if (after.residentMiB > before.residentMiB * residentGrowthMax)
    throw new Error(
      `the memory of the service grows from ${before.residentMiB.toFixed(0)} to ${after.residentMiB.toFixed(0)} MiB`,
    );
  // The connections of disconnected clients are closed with a short delay.
  const deadline = performance.now() + handlesCloseWithinMs;
  while (readUsage(server.pid).handles > handlesBefore + handleGrowthMax) {
    if (performance.now() > deadline) throw new Error("the service keeps handles of clients that have disconnected");
    await sleep(handlesLookEveryMs);
  }

  await server[Symbol.asyncDispose]();
  committing.check();
  process.exit(0);
}

/** The kinds of misbehaving clients. Each resolves when its misbehaviour ends. */
const misbehaviours: readonly ((server: Target) => Promise<void>)[] = [
  // A body that arrives byte by byte and never ends.
  async (server) => {
    const socket = await open(server, head(server, 1_000));
    const dripping = setInterval(() => socket.write(" "), slowByteEveryMs);
    await closeAfter(socket, misbehavedForMs);
    clearInterval(dripping);
  },
  // Half a request without a continuation.
  async (server) =>
    closeAfter(await open(server, "POST /v1/table/t_0/describe HTTP/1.1\r\nhost: a\r\ncontent-le"), misbehavedForMs),
  // A body that exceeds the limit but is sent anyway.
  async (server) => {
    const socket = await open(server, head(server, bodyBytes));
    socket.write(Buffer.alloc(bodyBytes, " "));
    await closeAfter(socket, misbehavedForMs);
  },
  // A body that exceeds the limit without a declared length.
  async (server) => {
    const socket = await open(server, head(server, undefined));
    const chunk = Buffer.alloc(64 * 1024, " ");
    for (let sent = 0; sent < bodyBytes && socket.writable; sent += chunk.length)
      socket.write(Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]));
    await closeAfter(socket, misbehavedForMs);
  },
  // A whole request of a client that does not wait for the response.
  async (server) => closeAfter(await open(server, `${head(server, 2)}{}`), 1),
];

function head({ headers }: Target, bodyLength: number | undefined): string {
  const length = bodyLength === undefined ? "transfer-encoding: chunked" : `content-length: ${bodyLength}`;
  const own = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST /v1/table/t_0/describe HTTP/1.1\r\nhost: a\r\n${own.join("")}${length}\r\n\r\n`;
}

async function open({ url }: Target, text: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  // The service may close the connection at any time.
  socket.on("error", () => {}).resume();
  await happened(socket, "connect", "close");
  socket.write(text);
  return socket;
}

/** Resolves after one of the events. An error does not count; the close that follows it does. */
function happened(socket: Socket, ...events: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    for (const event of events) socket.once(event, () => resolve());
  });
}

async function closeAfter(socket: Socket, ms: number): Promise<void> {
  if (!socket.destroyed) {
    const over = setTimeout(() => socket.destroy(), ms);
    await happened(socket, "close");
    clearTimeout(over);
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
