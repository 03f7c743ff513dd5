import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { basename } from "node:path";

/**
 * The shell that stands between: it kills the program when the pipe from this process closes,
 * which the system does however this process ends. It ends only after the program has, so
 * that then its ports are free.
 */
const guard = `exec 3<&0 </dev/null
"$@" 3<&- & program=$!
(cat <&3 >/dev/null; kill -KILL "$program" 2>/dev/null) & watch=$!
exec 3<&-
wait "$program"; status=$?
kill "$watch" 2>/dev/null
exit "$status"`;

const logTailBytes = 4000;

/** A program that runs as long as a test needs it, and never longer than the test's own process. */
export class Daemon {
  readonly name: string;
  readonly #logPath: string;
  readonly #child: ChildProcess;

  /** @param logPath What the program prints is added to it. */
  constructor(
    program: string,
    args: readonly string[],
    logPath: string,
    environment: Readonly<Record<string, string>> = {},
  ) {
    this.name = basename(program);
    this.#logPath = logPath;
    const log = openSync(logPath, "a");
    this.#child = spawn("/bin/sh", ["-c", guard, "sh", program, ...args], {
      stdio: ["pipe", log, log],
      // A group of its own: a signal from the terminal goes to the tests, which then end it in order.
      detached: true,
      env: { ...process.env, ...environment },
    });
    closeSync(log);
    // A pipe that breaks when the program ends is no news.
    this.#child.stdin?.on("error", () => {});
    // What waits for the pipe to close has nothing to wait for once the program has ended.
    this.#child.once("exit", () => this.#child.stdin?.destroy());
    this.#child.unref();
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** @throws Error with the end of its log when it is not running any more. */
  assertRunning(): void {
    if (!this.isRunning) throw new Error(`${this.name} ended with ${this.#child.exitCode}:\n${this.logTail()}`);
  }

  logTail(): string {
    return readFileSync(this.#logPath, "utf8").slice(-logTailBytes);
  }

  /** Ends it as a machine that fails would, and waits until it has ended. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    this.#child.ref();
    const ended = once(this.#child, "exit");
    this.#child.stdin?.destroy();
    await ended;
  }
}
