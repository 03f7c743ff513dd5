import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { temporaryFolder } from "./temporary-folder.ts";

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running program of this project. */
export interface Running {
  /** Returns the standard output so far. */
  readonly stdout: () => string;
  /** Resolves with the whole standard error once it contains the text. */
  printed(text: string): Promise<string>;
  readonly finished: Promise<Finished>;
}

/** A program in its own process. */
export interface Program extends Running {
  readonly child: ChildProcess;
}

/** The running programs, which must not outlive a failed test. Vitest terminates the process of a test by a signal. */
const running = new Set<ChildProcess>();
const killAll = () => {
  for (const child of running) child.kill("SIGKILL");
};
process.on("exit", killAll);
process.once("SIGTERM", () => {
  killAll();
  process.kill(process.pid, "SIGTERM");
});

/** Returns the environment of a program with only these settings of Tiltyard, and without the profiles of the user. */
export function environmentWith(settings: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TILTYARD_"));
  return { ...Object.fromEntries(inherited), XDG_CONFIG_HOME: join(tmpdir(), "no-profiles"), ...settings };
}

/** Creates the working directory of a program, which does not find the `data/` of the checkout there. */
export function workingDirectory(): string {
  return temporaryFolder("tiltyard working directory ");
}

/**
 * Starts a program with only these settings of Tiltyard.
 *
 * @param args The arguments of Node. The paths of programs are relative to the checkout.
 * @param at The working directory, the standard input, and a file for standard output. The default is an empty directory. Without a file,
 *   the test can read standard output.
 */
export function startProgram(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  at: { readonly folder?: string; readonly input?: string; readonly stdout?: string } = {},
): Program {
  const file = at.stdout === undefined ? undefined : openSync(at.stdout, "w");
  const absolute = args.map((each) => (/^(?!-).*\.[jt]s$/.test(each) ? resolve(each) : each));
  const child = spawn(process.execPath, absolute, {
    env: environmentWith(environment),
    cwd: at.folder ?? workingDirectory(),
    stdio: [at.input === undefined ? "ignore" : "pipe", file ?? "pipe", "pipe"],
  });
  child.stdin?.end(at.input);
  if (file !== undefined) closeSync(file);
  running.add(child);
  const ended = once(child, "close").then(([code, signal]) => {
    running.delete(child);
    return { code, signal };
  });
  return { child, ...follow(child, ended) };
}

/** Collects the output of a program. @param ended Resolves after the end of the program and its output. */
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

/** Reports whether a process exists. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Returns the child processes of a process, the oldest first. */
export function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync("pgrep", ["-P", String(pid)], { encoding: "utf8" });
  return stdout.split("\n").filter(Boolean).map(Number);
}

/** Runs the command line of the service and waits for its exit. */
export function runCatalogCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Finished> {
  return startProgram(["service/main.ts", ...args], environment).finished;
}
