import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { basename } from "node:path";

/**
 * The shell script that kills the program when the pipe from this process closes, which also happens when this process
 * is killed. It exits only after the program, so that its ports are free then.
 */
const guard = `exec 3<&0 </dev/null
"$@" 3<&- & program=$!
(cat <&3 >/dev/null; kill -KILL "$program" 2>/dev/null) & watch=$!
exec 3<&-
wait "$program"; status=$?
kill "$watch" 2>/dev/null
exit "$status"`;

const logTailBytes = 4000;

/** A program that runs as long as a test needs it, and never longer than the process of the test. */
export class Daemon {
  readonly name: string;
  readonly #logPath: string;
  readonly #child: ChildProcess;

  /** @param logPath The file to which the output is appended. */
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
      // The separate process group ensures that a signal of the terminal reaches only the tests, which then stop the
      // program in order.
      detached: true,
      env: { ...process.env, ...environment },
    });
    closeSync(log);
    // A broken pipe is expected when the program exits.
    this.#child.stdin?.on("error", () => {});
    // After the exit of the program, nothing needs to wait for the pipe.
    this.#child.once("exit", () => this.#child.stdin?.destroy());
    this.#child.unref();
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Requires that the program is running. @throws Error with the end of its log */
  assertRunning(): void {
    if (!this.isRunning) throw new Error(`${this.name} ended with ${this.#child.exitCode}:\n${this.logTail()}`);
  }

  logTail(): string {
    return readFileSync(this.#logPath, "utf8").slice(-logTailBytes);
  }

  /** Kills the program, as in a crash of the machine, and waits for its exit. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    this.#child.ref();
    const ended = once(this.#child, "exit");
    this.#child.stdin?.destroy();
    await ended;
  }
}
