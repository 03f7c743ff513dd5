import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "undici";
import { z } from "zod";
import { readColumn, startCommitting } from "./committing.ts";
import { makeFolder } from "./folder.ts";
import { summarize } from "./load.ts";
import { between, readArguments } from "./options.ts";
import { childrenOf, type ProcessUsage, readUsage } from "./process-usage.ts";
import { type Server, startTiltyard } from "./servers.ts";

const committers = 8;
/** Clients that describe a table, over and over. */
const readers = 32;
/** Clients that each create namespaces and look for them by the connections of the readers. */
const changers = 4;
const samples = 10;
/** A failure that comes later than this after a kill has another reason. */
const aftermathMs = 5_000;
/** A request that takes longer than this, retries included, is stuck. */
const stuckMs = 60_000;
const retryAfterMs = 20;
/** How long a process that is started again may take. */
const startsWithinMs = 30_000;
const lookEveryMs = 20;
/** What a leak is more than. */
const residentGrowthMax = 1.2;
const handleGrowthMax = 40;

const Options = z.object({
  seconds: between(1, 86_400).default(600),
  every: between(3, 3_600).default(10),
  processes: between(2, 64).default(4),
});

/**
 * Kills one of the processes of the catalog every few seconds under load, each second time the one that writes. Then the
 * catalog is told to stop under that load, and what it acknowledged is looked for.
 *
 * @throws Error when something acknowledged is lost or not seen on another connection, when a request fails otherwise
 * than by a cut connection, or by 503 where it changes something, soon after a kill, or when memory or handles grow.
 */
export async function measureKills(args: readonly string[]): Promise<void> {
  const { seconds, every, processes } = readArguments(args, Options);
  if (seconds < samples * every) throw new Error(`--seconds: at least ${samples} times --every`);
  const folder = makeFolder();
  const server = await startTiltyard(folder, [], { processes });
  const committing = await startCommitting(server, folder, committers);
  const load = startLoad(server);

  const usages: { readonly all: ProcessUsage; readonly supervisor: ProcessUsage }[] = [];
  for (let kill = 1; kill <= seconds / every; kill += 1) {
    const next = performance.now() + every * 1_000;
    await killOne(server.pid, kill % 2 === 1, load, processes);
    await Promise.race([sleep(Math.max(0, next - performance.now())), load.failed]);
    if (kill % Math.floor(seconds / every / samples) !== 0) continue;
    const all = readUsage(server.pid);
    const supervisor = readUsage(server.pid, { children: false });
    usages.push({ all, supervisor });
    const { requests, cut, unavailable } = load;
    print(
      `${kill} kills: ${requests} requests, ${cut} cut, ${unavailable} answered 503; ${committing.acknowledged()} commits; ` +
        `${all.residentMiB.toFixed(0)} MiB, ${all.handles} handles; the supervisor ${supervisor.residentMiB.toFixed(0)} MiB`,
    );
  }
  for (const [what, waitsMs] of Object.entries(load.waitsMs)) {
    const { p50Ms, longestMs } = summarize(waitsMs, seconds);
    print(`${what}: answered after ${p50Ms.toFixed(0)} ms in the middle, ${longestMs.toFixed(0)} ms at the most`);
    if (longestMs > stuckMs) throw new Error("a request was stuck");
  }
  const [middle, last] = [usages[Math.floor(usages.length / 2) - 1], usages.at(-1)];
  if (middle === undefined || last === undefined) throw new Error("there are too few samples");
  // The supervisor outlives all others.
  for (const part of ["all", "supervisor"] as const) {
    if (last[part].residentMiB > middle[part].residentMiB * residentGrowthMax)
      throw new Error(`the memory of ${part} grows`);
    if (last[part].handles > middle[part].handles + handleGrowthMax) throw new Error(`the handles of ${part} grow`);
  }

  load.stop();
  await server[Symbol.asyncDispose]();
  committing.check();
  const there = new Set(readColumn(folder, "select name from namespaces"));
  const lost = load.created.filter((name) => !there.has(name));
  print(`${load.created.length} namespaces acknowledged, ${lost.length} lost`);
  if (lost.length > 0) throw new Error("acknowledged namespaces were lost");
  process.exit(0);
}

interface Load {
  readonly requests: number;
  readonly cut: number;
  readonly unavailable: number;
  /** The namespaces whose creation was acknowledged. */
  readonly created: readonly string[];
  /** How long the first request of each client took after each kill, retries included. */
  readonly waitsMs: Readonly<Record<"reads" | "changes", readonly number[]>>;
  /** Tells that a process is being killed. */
  afterKill(): void;
  /** Rejects when a request fails as none may. */
  readonly failed: Promise<never>;
  stop(): void;
}

function startLoad(server: Server): Load {
  const failed = Promise.withResolvers<never>();
  const created: string[] = [];
  const waitsMs = { reads: [] as number[], changes: [] as number[] };
  const counts = { requests: 0, cut: 0, unavailable: 0 };
  let [killedAt, kills, isOver] = [performance.now(), 0, false];

  /** Sends a request until it is answered. @param seen The last kill after which this client was answered. */
  async function send(client: Client, path: string, body: object, of: { kind: "reads" | "changes"; seen: number }) {
    const begin = performance.now();
    for (;;) {
      counts.requests += 1;
      const answer = await client
        .request({
          method: "POST",
          path,
          headers: { ...server.headers, "content-type": "application/json" },
          body: JSON.stringify(body),
        })
        .then(async ({ statusCode, headers, body: text }) => ({ statusCode, headers, text: await text.text() }))
        .catch((error: Error & { code?: string }) => error);
      if (isOver) return;
      if (!(answer instanceof Error) && answer.statusCode === 200) break;
      const isCut = answer instanceof Error && /^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/.test(answer.code ?? "");
      const isUnavailable = !(answer instanceof Error) && answer.statusCode === 503 && "retry-after" in answer.headers;
      const isExpected =
        performance.now() < killedAt + aftermathMs && (isCut || (isUnavailable && of.kind === "changes"));
      const what = answer instanceof Error ? `${answer.code} ${answer}` : `${answer.statusCode} ${answer.text}`;
      if (!isExpected)
        throw new Error(`${path}, ${(performance.now() - killedAt).toFixed(0)} ms after a kill: ${what}`);
      counts[isCut ? "cut" : "unavailable"] += 1;
      await sleep(retryAfterMs);
    }
    if (of.seen < kills) waitsMs[of.kind].push(performance.now() - begin);
    of.seen = kills;
  }

  const clients = Array.from({ length: readers }, () => new Client(server.url));
  const keep = (work: () => Promise<void>) => {
    const run = async () => {
      while (!isOver) await work();
    };
    run().catch(failed.reject);
  };
  clients.forEach((client) => {
    const of = { kind: "reads" as const, seen: 0 };
    keep(() => send(client, "/v1/table/t_0/describe", {}, of));
  });
  for (let changer = 0; changer < changers; changer += 1) {
    const client = new Client(server.url);
    const [changes, reads] = [
      { kind: "changes" as const, seen: 0 },
      { kind: "reads" as const, seen: 0 },
    ];
    let count = 0;
    keep(async () => {
      const name = `n_${changer}_${count}`;
      count += 1;
      // What was cut may have been carried out.
      await send(client, `/v1/namespace/${name}/create`, { mode: "ExistOk" }, changes);
      if (isOver) return;
      created.push(name);
      const other = clients[count % readers];
      if (other !== undefined) await send(other, `/v1/namespace/${name}/exists`, {}, reads);
    });
  }
  return {
    get requests() {
      return counts.requests;
    },
    get cut() {
      return counts.cut;
    },
    get unavailable() {
      return counts.unavailable;
    },
    created,
    waitsMs,
    afterKill: () => {
      killedAt = performance.now();
      kills += 1;
    },
    failed: failed.promise,
    stop: () => {
      isOver = true;
    },
  };
}

/** Kills a process, and waits until there are as many as before. */
async function killOne(supervisor: number, theWriter: boolean, load: Load, processes: number): Promise<void> {
  const all = childrenOf(supervisor);
  const writer = all.find(isWriter);
  const others = all.filter((pid) => pid !== writer);
  const victim = theWriter ? writer : others[Math.floor(Math.random() * others.length)];
  if (victim === undefined) throw new Error("there is no process to kill");
  load.afterKill();
  process.kill(victim, "SIGKILL");
  const deadline = performance.now() + startsWithinMs;
  for (
    let now = all;
    now.length < processes || now.includes(victim) || !now.some(isWriter);
    now = childrenOf(supervisor)
  ) {
    if (performance.now() > deadline) throw new Error("no other process was started");
    await Promise.race([sleep(lookEveryMs), load.failed]);
  }
}

/** Whether a process carries out what the others call it for. */
function isWriter(pid: number): boolean {
  const listening = readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , flags, , , , path]) => flags === "00010000" && path?.endsWith("/calls"))
    .map(([, , , , , , inode]) => `socket:[${inode}]`);
  return descriptorsOf(pid).some((descriptor) => listening.includes(descriptor));
}

function descriptorsOf(pid: number): string[] {
  return namesIn(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)];
    } catch {
      // It was closed meanwhile.
      return [];
    }
  });
}

/** @returns Nothing when there is no such folder: the process has ended. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
