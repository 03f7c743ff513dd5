import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { closeSync, openSync } from "node:fs";
import type { Readable } from "node:stream";

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program of this project that runs. */
export interface Running {
  /** What it has printed so far. */
  readonly stdout: () => string;
  /** Resolves when it has printed the text on standard error, with all that it printed there. */
  printed(text: string): Promise<string>;
  readonly finished: Promise<Finished>;
}

/** One in a process of its own. */
export interface Program extends Running {
  readonly child: ChildProcess;
}

/** A test that fails half-way must not leave its programs behind. Vitest ends the process of a test by a signal. */
const running = new Set<ChildProcess>();
const killAll = () => {
  for (const child of running) child.kill("SIGKILL");
};
process.on("exit", killAll);
process.once("SIGTERM", () => {
  killAll();
  process.kill(process.pid, "SIGTERM");
});

/** The environment of a program with these settings and no others of Tiltyard's; a service is one process unless they say more. */
export function environmentWith(settings: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TILTYARD_"));
  return { ...Object.fromEntries(inherited), TILTYARD_PROCESSES: "1", ...settings };
}

/**
 * Starts a program with these settings and no others of Tiltyard's.
 *
 * @param to Where standard output goes to; it is kept for the test when absent.
 */
export function startProgram(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  to: { readonly stdout?: string } = {},
): Program {
  const file = to.stdout === undefined ? undefined : openSync(to.stdout, "w");
  const child = spawn(process.execPath, args, {
    env: environmentWith(environment),
    stdio: ["ignore", file ?? "pipe", "pipe"],
  });
  if (file !== undefined) closeSync(file);
  running.add(child);
  const ended = once(child, "close").then(([code, signal]) => {
    running.delete(child);
    return { code, signal };
  });
  return { child, ...follow(child, ended) };
}

/** Keeps what a program prints. @param ended Resolves when it has ended, and has printed all. */
export function follow(
  streams: { readonly stdout: Readable | null; readonly stderr: Readable | null },
  ended: Promise<Pick<Finished, "code" | "signal">>,
): Running {
  let [stdout, stderr] = ["", ""];
  streams.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  const told = new EventEmitter();
  streams.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    told.emit("more");
  });
  const finished = ended.then((how) => ({ ...how, stdout, stderr }));
  return {
    stdout: () => stdout,
    printed: async (text) => {
      while (!stderr.includes(text)) {
        const hasEnded = await Promise.race([once(told, "more").then(() => false), finished.then(() => true)]);
        if (hasEnded && !stderr.includes(text))
          throw new Error(`the program ended before it printed ${JSON.stringify(text)}: ${stderr}`);
      }
      return stderr;
    },
    finished,
  };
}

/** The processes that a process has started, the oldest first. */
export function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync("pgrep", ["-P", String(pid)], { encoding: "utf8" });
  return stdout.split("\n").filter(Boolean).map(Number);
}

/** Runs the service's command line to its end. */
export function runCatalogCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Finished> {
  return startProgram(["service/main.ts", ...args], environment).finished;
}
