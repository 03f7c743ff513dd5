import cluster, { type Worker } from "node:cluster";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { backoffMs } from "@tiltyard/protocol";
import { RateLimiterClusterMaster } from "rate-limiter-flexible";
import { claimPort } from "../http/port.ts";
import type { LogOutput } from "../log.ts";
import { endsWithinMs, killSoon, lateToEnd } from "./end-in-time.ts";
import { createInquiries } from "./inquiries.ts";
import { ToSupervisor, type ToWorker } from "./messages.ts";

const backoff = { firstMs: 50, mostMs: 10_000 };
/** A process that served for this long was healthy: when it ends, its successor starts without a longer backoff. */
const wellAfterMs = 10_000;
/**
 * The young generation that V8 gives by itself; the image halves it for a process that is alone in a small pod. Several
 * processes have memory for it, and answer up to an eighth more requests.
 */
const youngGeneration = "--max-semi-space-size=16";

/** What is known of a process that runs. */
interface Member {
  readonly worker: Worker;
  readonly startedAt: number;
  hasJoined: boolean;
  isReady: boolean;
}

export interface Supervised {
  readonly count: number;
  readonly host: string;
  /** 0 is any that is free. */
  readonly port: number;
  /** Whether one process writes and the others read; else all are equal. */
  readonly hasWriter: boolean;
  readonly output: LogOutput;
}

/**
 * Runs a service in several processes that listen on one port, and restarts those that end. This process takes no
 * connection: the kernel gives each to one of the others.
 *
 * @param onReady Is called once, when all processes take requests.
 * @returns The exit code, when the service was told to stop or cannot start.
 * @throws Error when the port is taken.
 */
export async function supervise(supervised: Supervised, onReady: (url: string) => void): Promise<number> {
  const { count, hasWriter, output } = supervised;
  const { log } = output;
  using claimed = await claimPort(supervised);
  const folder = mkdtempSync(join(tmpdir(), "tiltyard-"));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", removeFolder);
  cluster.setupPrimary({
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    execArgv: [...process.execArgv, youngGeneration],
  });
  new RateLimiterClusterMaster();

  const members = new Map<number, Member>();
  const inquiries = createInquiries(tell);
  const ended = Promise.withResolvers<number>();
  let writer: Member | undefined;
  let failures = 0;
  let hasServed = false;
  const stopping = new AbortController();

  function tell(worker: Worker, message: ToWorker): void {
    // `onExit` handles one that has just ended.
    if (worker.isConnected()) worker.send(message, () => undefined);
  }

  function start(): void {
    const worker = cluster.fork();
    const member = { worker, startedAt: performance.now(), hasJoined: false, isReady: false };
    members.set(worker.id, member);
    if (worker.process.stdout !== null) output.relay(worker.process.stdout);
    worker.on("message", (message) => {
      const known = ToSupervisor.safeParse(message);
      if (known.success) take(member, known.data);
    });
    worker.process.once("exit", (code, signal) => void onExit(member, code, signal));
  }

  function take(member: Member, message: ToSupervisor): void {
    const { worker } = member;
    if (message.tiltyard === "joined") {
      member.hasJoined = true;
      // It has done nothing yet.
      if (stopping.signal.aborted) worker.process.kill("SIGKILL");
      else begin(member);
    } else if (message.tiltyard === "ready") onceReady(member, message.url);
    else if (message.tiltyard === "answer") inquiries.answer(worker, message.id, message.answer);
    else {
      const others = [...members.values()].filter((each) => each.isReady && each !== member);
      inquiries.ask(
        worker,
        message.id,
        message.question,
        others.map((each) => each.worker),
      );
    }
  }

  function begin(member: Member): void {
    const writes = hasWriter && writer === undefined;
    if (writes) writer = member;
    const role = writes ? "writer" : hasWriter ? "reader" : "equal";
    tell(member.worker, { tiltyard: "begin", role, count, port: claimed.port, folder, hasServed });
  }

  function onceReady(member: Member, url: string): void {
    member.isReady = true;
    // What is done once, such as a migration, the first one has done.
    while (!stopping.signal.aborted && !hasServed && members.size < count) start();
    if (hasServed || [...members.values()].some(({ isReady }) => !isReady)) return;
    hasServed = true;
    onReady(url);
  }

  async function onExit(member: Member, code: number | null, signal: string | null): Promise<void> {
    const { worker } = member;
    members.delete(worker.id);
    inquiries.forget(worker);
    if (member === writer) writer = undefined;
    if (stopping.signal.aborted) return letEnd();
    if (!hasServed && members.size === 0) return ended.resolve(code ?? 1);
    log.error({ process: worker.process.pid, code, signal }, "a process of the service ended; another one is started");
    const successor = [...members.values()].find(({ isReady }) => isReady);
    if (hasWriter && writer === undefined && successor !== undefined) {
      writer = successor;
      tell(successor.worker, { tiltyard: "write" });
    }
    failures = performance.now() - member.startedAt > wellAfterMs ? 0 : failures + 1;
    // The pause ends when the service is told to stop.
    await pause(failures === 0 ? 0 : backoffMs(failures, backoff), undefined, stopping).catch(() => undefined);
    if (!stopping.signal.aborted) start();
  }

  function stop(signal: string): void {
    log.info({ signal }, "stopping");
    stopping.abort();
    setTimeout(killAll, endsWithinMs).unref();
    for (const { worker, hasJoined } of members.values()) if (hasJoined) tell(worker, { tiltyard: "stop" });
    letEnd();
  }

  function killAll(): void {
    const processes = [...members.values()].map(({ worker }) => worker.process);
    log.error({ processes: processes.map(({ pid }) => pid) }, lateToEnd);
    killSoon();
    ended.resolve(1);
    for (const each of processes) each.kill("SIGKILL");
    // This process may be killed before its exit.
    removeFolder();
  }

  /** The process that writes is needed until all others have ended. */
  function letEnd(): void {
    if (members.size === 0) ended.resolve(0);
    if (writer !== undefined && members.size === 1) tell(writer.worker, { tiltyard: "alone" });
  }

  // A second signal ends this process at once, as it does by default, and the others with it.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
  start();
  // The port is claimed until then.
  return await ended.promise;
}
