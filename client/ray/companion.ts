import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";

/**
 * The shell script that runs a program until its standard input ends. The program thus exits with the process at the
 * other end, even if that process is killed.
 */
const untilInputEnds = `exec 3<&0; "$@" </dev/null & program=$!
{ cat <&3 >/dev/null; kill $program; } 2>/dev/null & wait $program`;
/** The number of characters of the output that are stored to explain the exit of a program. */
const tailLength = 4_000;

/**
 * A program that runs next to this process and exits with it. It is detached from the terminal, so that Ctrl-C does not
 * stop it before its users.
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
    // The shell may have exited when its input is closed.
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

  /** Returns how the program ended, such as `exit code 1`. Its shell exits with 128 more than the number of a signal. */
  get ending(): string {
    const { exitCode, signalCode } = this.#child;
    if (exitCode === null) return signalCode ?? "it runs";
    const [name] = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128) ?? [];
    return name ?? `exit code ${exitCode}`;
  }

  /** Returns the end of the output so far. */
  get printed(): string {
    return this.#printed;
  }

  /** Stops the program and waits for its exit. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.#child, "exit");
    this.#child.stdin?.end();
    await ended;
  }
}
