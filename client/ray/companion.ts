import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/**
 * A shell that runs a program until its own standard input ends: the program ends with the
 * process that holds the other end, even when that process is killed.
 */
const untilInputEnds = `exec 3<&0; "$@" </dev/null & program=$!
{ cat <&3 >/dev/null; kill $program; } 2>/dev/null & wait $program`;
/** How much of a program's output is kept to explain why it ended. */
const tailLength = 4_000;

/**
 * A program beside this process, which ends with it. It is out of the terminal's reach, so that
 * Ctrl-C does not end it before its users.
 */
export class Companion implements AsyncDisposable {
  readonly #child: ChildProcess;
  #printed = "";

  constructor(command: readonly string[], env: NodeJS.ProcessEnv) {
    this.#child = spawn("/bin/sh", ["-c", untilInputEnds, "sh", ...command], {
      env,
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    // The shell may be gone when its input is closed.
    this.#child.stdin?.on("error", () => {});
    this.#child.once("exit", () => this.#child.stdin?.destroy());
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#printed = (this.#printed + text).slice(-tailLength);
      });
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** The end of what it has printed so far. */
  get printed(): string {
    return this.#printed;
  }

  /** Ends it, and waits until it has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.#child, "exit");
    this.#child.stdin?.end();
    await ended;
  }
}
