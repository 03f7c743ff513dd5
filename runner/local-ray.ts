import { availableParallelism } from "node:os";
import { type LocalRay, readyWorkerSettings, startLocalRay } from "@tiltyard/client";
import { lastLinesOf } from "./job-text.ts";

/** The time in milliseconds between two checks of the node of Ray. */
const nodeCheckMs = 5_000;

/** A Ray of this machine that starts for the first job and restarts after its death. */
export class KeptRay implements AsyncDisposable {
  readonly #env: NodeJS.ProcessEnv;
  readonly #numCpus: number | undefined;
  readonly #signal: AbortSignal;
  readonly #log: (text: string) => void;
  #started: Promise<LocalRay> | undefined;
  #checkedAtMs = 0;

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
    const end = present && (await this.#endOf(present));
    if (present !== undefined && end === undefined) return present;
    // The scope may have stopped the Ray meanwhile.
    this.#signal.throwIfAborted();
    if (present !== undefined) {
      this.#log(`Ray has ended; starting another one. ${end}`);
      await present[Symbol.asyncDispose]();
    }
    this.#started = this.#start();
    // A failed start is retried by the next call.
    this.#started.catch(() => {
      this.#started = undefined;
    });
    return this.#started;
  }

  /** Returns why a Ray can run no more jobs; undefined if it can. */
  async #endOf(ray: LocalRay): Promise<string | undefined> {
    if (ray.hasEnded) return `It ended with ${ray.ending}. Its last output:\n${lastLinesOf(ray.printed)}`;
    if (performance.now() - this.#checkedAtMs < nodeCheckMs) return undefined;
    this.#checkedAtMs = performance.now();
    return ray.nodeLoss();
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
