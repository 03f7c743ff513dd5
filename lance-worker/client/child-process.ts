import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { getCompileCacheDir } from "node:module";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { backoffMs, CatalogError } from "@tiltyard/protocol";
import { type Call, callBytesHeader } from "../wire.ts";

export class ChildEnded extends Error {
  override readonly name: string = "ChildEnded";
}

/** The catalog stopped the child because of a different call. */
export class ChildStopped extends ChildEnded {
  override readonly name = "ChildStopped";
}

export interface ChildOptions {
  /** The maximum resident memory of the child, beyond which it is killed. */
  readonly memoryBytes: number;
  /** Another child, whose memory counts towards the maximum. */
  readonly beside?: RowsChild;
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Readonly<Record<"warn" | "error", (fields: object, message: string) => void>>;
}

/** The process that runs the Lance library. It starts with the first call and restarts after its exit. */
export interface RowsChild extends AsyncDisposable {
  /** Sends a call and its Arrow stream. @throws ChildEnded; CatalogError ServiceUnavailable before a restart. */
  call(call: Call, rows?: ReadableStream<Uint8Array>): Promise<IncomingMessage>;
  /** The number of crashes of the child so far. */
  readonly endings: number;
  /** The resident memory of the child when it was last checked. */
  readonly residentBytes: number;
  /** Stops the child at once for a logged reason. Its calls are rejected with ChildStopped. The next call starts it again. */
  stop(reason: string): void;
  /** Stops the child while no call runs. The next call starts it again. */
  end(): Promise<void>;
}

const memoryCheckedEveryMs = 100;
const restart = { firstMs: 200, mostMs: 10_000 };
/** The lifetime after which a child restarts without a delay and the backoff is reset. */
const stableMs = 60_000;
/** The maximum time that a call waits for a restart before it is rejected. */
const patienceMs = 1_000;
const endMs = 5_000;
const heapMbMin = 64;
/** The maximum delay between the end of a process's connections and the detection of its exit. */
const endNoticedWithinMs = 1_000;
const program = fileURLToPath(import.meta.resolve("@tiltyard/lance-worker/main"));

interface Running {
  readonly process: ChildProcess;
  readonly socket: string;
  readonly agent: Agent;
  isExpected: boolean;
  readonly ended: Promise<string>;
}

export function createChild({ memoryBytes, beside, environment, log }: ChildOptions): RowsChild {
  let residentBytes = 0;
  let running: Promise<Running> | undefined;
  let endings = 0;
  let failures = 0;
  let notBefore = 0;
  let isStopped = false;

  function noteEnd(lifetimeMs: number): void {
    failures = lifetimeMs > stableMs ? 0 : failures + 1;
    if (failures > 0) notBefore = Date.now() + backoffMs(failures - 1, restart);
  }

  async function start(): Promise<Running> {
    const waitMs = notBefore - Date.now();
    if (waitMs > patienceMs)
      throw new CatalogError(
        "ServiceUnavailable",
        "the process that reads rows failed and restarts soon. Retry later",
        {
          retryAfterSeconds: Math.ceil(waitMs / 1000),
        },
      );
    await sleep(Math.max(0, waitMs));
    const { child, folder, socket } = await spawnProgram(memoryBytes, environment).catch((cause: unknown) => {
      noteEnd(0);
      throw new CatalogError("ServiceUnavailable", "the process that reads rows cannot be started. Retry later", {
        cause,
      });
    });
    // The answers of the catalog's own process come first when all processors compute. Threads inherit the priority.
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
    const startedAt = Date.now();
    let excess: string | undefined;
    const watch = watchMemory(child, (usedBytes) => {
      residentBytes = usedBytes;
      const togetherBytes = usedBytes + (beside?.residentBytes ?? 0);
      if (togetherBytes <= memoryBytes) return;
      excess = `used ${Math.round(togetherBytes / 1024 ** 2)} MiB of memory, more than TILTYARD_ROWS_MEMORY allows`;
      child.kill("SIGKILL");
    });
    const agent = new Agent({ keepAlive: true });
    const started = { process: child, socket, agent, isExpected: false };
    const ended = once(child, "exit").then(([code, signal]: (number | string | null)[]) => {
      watch[Symbol.dispose]();
      residentBytes = 0;
      agent.destroy();
      void rm(folder, { recursive: true, force: true });
      const why = excess ?? (signal === null ? `ended with status ${code}` : `ended with ${signal}`);
      if (started.isExpected) return why;
      running = undefined;
      endings += 1;
      noteEnd(Date.now() - startedAt);
      log.error({ pid: child.pid }, `the process that reads rows ${why}`);
      return why;
    });
    const failure = await Promise.race([once(child, "message").then(() => undefined), ended]);
    if (failure !== undefined) throw new ChildEnded(failure);
    return Object.assign(started, { ended });
  }

  async function end(): Promise<void> {
    const child = await running?.catch(() => undefined);
    running = undefined;
    if (child === undefined) return;
    child.isExpected = true;
    if (child.process.connected) child.process.disconnect();
    const timer = setTimeout(() => child.process.kill("SIGKILL"), endMs);
    await child.ended;
    clearTimeout(timer);
  }

  return {
    get endings() {
      return endings;
    },
    get residentBytes() {
      return residentBytes;
    },
    call: async (call, rows) => {
      if (isStopped) throw new CatalogError("ServiceUnavailable", "the catalog is stopping");
      running ??= start().catch((error: unknown) => {
        running = undefined;
        throw error;
      });
      return send(await running, call, rows);
    },
    stop: (reason) => {
      const stopped = running;
      running = undefined;
      void stopped?.then(
        (child) => {
          child.isExpected = true;
          log.warn({ pid: child.process.pid }, `the process that reads rows was stopped: ${reason}`);
          child.process.kill("SIGKILL");
        },
        () => undefined,
      );
    },
    end,
    [Symbol.asyncDispose]: async () => {
      isStopped = true;
      await end();
    },
  };
}

/** Starts the program with a folder for its socket. @throws Error of the system, such as EAGAIN or ENOSPC. */
async function spawnProgram(memoryBytes: number, environment: NodeJS.ProcessEnv) {
  const folder = await mkdtemp(join(tmpdir(), "tiltyard-rows-"));
  const socket = join(folder, "socket");
  const heapMb = Math.max(heapMbMin, Math.round(memoryBytes / 1024 ** 2 / 4));
  const compileCache = getCompileCacheDir();
  try {
    const child = fork(program, [socket, String(memoryBytes)], {
      execArgv: [...importsOf(process.execArgv), `--max-old-space-size=${heapMb}`, "--max-semi-space-size=8"],
      env: { ...environment, ...(compileCache !== undefined && { NODE_COMPILE_CACHE: compileCache }) },
      stdio: ["ignore", 2, 2, "ipc"],
    });
    await once(child, "spawn");
    return { child, folder, socket };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** Sends a call over the socket of the child and returns the response as soon as it begins. */
function send(child: Running, call: Call, rows: ReadableStream<Uint8Array> | undefined): Promise<IncomingMessage> {
  const { socket: socketPath, agent, ended } = child;
  const head = Buffer.from(JSON.stringify(call));
  return new Promise((resolve, reject) => {
    const headers = { [callBytesHeader]: head.length, ...(rows === undefined && { "content-length": head.length }) };
    const outgoing = request({ socketPath, agent, method: "POST", headers });
    outgoing.once("response", (response) => {
      // A child that rejects rows before their end reads no more of them.
      response.once("end", () => outgoing.writableEnded || outgoing.destroy());
      resolve(response);
    });
    outgoing.once("error", async (error) => {
      const why = await Promise.race([ended, sleep(endNoticedWithinMs)]);
      if (why === undefined) reject(error);
      else reject(child.isExpected ? new ChildStopped(why) : new ChildEnded(why));
    });
    if (rows === undefined) outgoing.end(head);
    else {
      outgoing.write(head);
      sendRows(rows, outgoing).catch(reject);
    }
  });
}

/** Sends rows until the child responds, which may happen before their end. The rest remains for another reader. */
async function sendRows(rows: ReadableStream<Uint8Array>, outgoing: ClientRequest): Promise<void> {
  const reader = rows.getReader();
  let isOver = false;
  let proceed = () => {};
  const stop = () => {
    isOver = true;
    // A pending read is rejected, and its bytes remain in the stream.
    reader.releaseLock();
    proceed();
  };
  for (const event of ["response", "close"] as const) outgoing.once(event, stop);
  outgoing.on("drain", () => proceed());
  try {
    for (let next = await reader.read(); !next.done && !isOver; next = await reader.read())
      if (!outgoing.write(next.value))
        await new Promise<void>((resolve) => {
          proceed = resolve;
        });
    outgoing.end();
  } catch (error) {
    if (isOver) return;
    outgoing.destroy();
    throw error;
  }
}

/** Reports the resident memory of a child regularly. Only Linux shows the memory of another process. */
function watchMemory(child: ChildProcess, onUse: (bytes: number) => void): Disposable {
  const timer = setInterval(async () => {
    const status = await readFile(`/proc/${child.pid}/status`, "utf8").catch(() => "");
    const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(status) ?? [];
    if (kilobytes !== undefined && child.exitCode === null && child.signalCode === null)
      onUse(Number(kilobytes) * 1024);
  }, memoryCheckedEveryMs);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function importsOf(flags: readonly string[]): string[] {
  return flags.flatMap((flag, index) =>
    flag === "--import" ? [flag, flags[index + 1] ?? ""] : flag.startsWith("--import=") ? [flag] : [],
  );
}
