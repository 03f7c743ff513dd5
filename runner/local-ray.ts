import { availableParallelism } from "node:os";
import { type LocalRay, readyWorkerSettings, startLocalRay } from "@tiltyard/client";
import { lastLinesOf } from "./job-text.ts";

/** A Ray of this machine that starts for the first job and restarts after its death. */
export class KeptRay implements AsyncDisposable {
  readonly #env: NodeJS.ProcessEnv;
  readonly #numCpus: number | undefined;
  readonly #signal: AbortSignal;
  readonly #log: (text: string) => void;
  #started: Promise<LocalRay> | undefined;

  constructor(options: {
    readonly env: NodeJS.ProcessEnv;
    readonly numCpus?: number | undefined;
    readonly signal: AbortSignal;
    readonly log: (text: string) => void;
  }) {
    [this.#env, this.#numCpus] = [options.env, options.numCpus];
    [this.#signal, this.#log] = [options.signal, options.log];
  }

  /** Returns the running Ray or starts one. @throws LocalRayError; the reason of the signal. */
  async get(): Promise<LocalRay> {
    const present = await this.#started;
    if (present !== undefined && !present.hasEnded) return present;
    // The scope may have stopped the Ray meanwhile.
    this.#signal.throwIfAborted();
    if (present !== undefined) {
      this.#log(`Ray has ended; starting another one. Its last output:\n${lastLinesOf(present.printed)}`);
      await present[Symbol.asyncDispose]();
    }
    this.#started = this.#start();
    // A failed start is retried by the next call.
    this.#started.catch(() => {
      this.#started = undefined;
    });
    return this.#started;
  }

  async #start(): Promise<LocalRay> {
    const ray = await startLocalRay({
      env: { ...readyWorkerSettings(this.#numCpus ?? availableParallelism()), ...this.#env },
      signal: this.#signal,
      ...(this.#numCpus !== undefined && { numCpus: this.#numCpus }),
    });
    this.#log(`Ray ${ray.version} is ready; dashboard: ${ray.dashboardUrl}`);
    return ray;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const present = await this.#started?.catch(() => undefined);
    await present?.[Symbol.asyncDispose]();
  }
}
