import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { type DiskCalls, diskCalls } from "./disk-calls.ts";

/** A call, as it is sent to the thread. */
export interface Call {
  readonly id: number;
  readonly name: keyof DiskCalls;
  readonly file: string;
}

/** What the thread answers to a call. */
export type Answer = { readonly id: number } & (
  | { readonly result: Awaited<ReturnType<DiskCalls[keyof DiskCalls]>> | undefined }
  | { readonly error: { readonly message: string; readonly code: string | undefined } }
);

/** The thread takes some 20 MiB, which fewer calls at once do not justify. */
const threadFromCalls = 16;
/** The thread keeps some numbers: V8 would give it the young generation of a whole process. */
const resourceLimits = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 64 };

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Makes the calls of commits that wait for the disk in a thread of their own. To hand each of them to Node's pool takes
 * some 20 microseconds of the event loop, and to be told of its end as much: this thread does both, and the event loop
 * sends it the calls of a turn together. The pool makes them at once, so that none waits for another.
 *
 * The thread begins when there are many calls at once; until then each is made here. When it ends, the calls that wait
 * fail, and others begin another.
 */
export class DiskThread {
  /** What the thread runs. A package has JavaScript in the place of TypeScript. */
  static readonly program = join(import.meta.dirname, `disk-thread-main${extname(import.meta.filename)}`);

  readonly #programOf: () => string;
  readonly #fromCalls: number;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #calls: Call[] = [];
  #madeHere = 0;
  #lastId = 0;

  /**
   * @param programOf Says what the next thread runs.
   * @param fromCalls How many calls there are at once when it begins.
   */
  constructor(programOf = () => DiskThread.program, fromCalls = threadFromCalls) {
    this.#programOf = programOf;
    this.#fromCalls = fromCalls;
  }

  /** @throws Error of the file system, with its code. */
  run<Name extends keyof DiskCalls>(name: Name, file: string): ReturnType<DiskCalls[Name]>;
  run(name: keyof DiskCalls, file: string): Promise<unknown> {
    const hasThread = this.#worker !== undefined || this.#calls.length > 0;
    return hasThread || this.#madeHere + 1 >= this.#fromCalls ? this.#send(name, file) : this.#make(name, file);
  }

  async #make(name: keyof DiskCalls, file: string): Promise<unknown> {
    this.#madeHere += 1;
    try {
      return await diskCalls[name](file);
    } finally {
      this.#madeHere -= 1;
    }
  }

  #send(name: keyof DiskCalls, file: string): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#calls.push({ id, name, file });
    if (this.#calls.length === 1) setImmediate(this.#sendAll);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  readonly #sendAll = (): void => {
    const calls = this.#calls;
    this.#calls = [];
    this.#worker ??= this.#start();
    // It keeps the process alive for as long as a call waits.
    this.#worker.ref();
    this.#worker.postMessage(calls);
  };

  #start(): Worker {
    const worker = new Worker(this.#programOf(), { resourceLimits });
    const lost = (problem: string) => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      const waiting = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const { reject } of waiting) reject(new Error(`the thread of calls to the disk ended: ${problem}`));
    };
    worker.on("message", (answers: readonly Answer[]) => {
      for (const answer of answers) this.#settle(answer);
      if (this.#waiting.size === 0) worker.unref();
    });
    worker.on("error", (error) => lost(String(error)));
    worker.on("exit", (code) => lost(`exit code ${code}`));
    return worker;
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("error" in answer) waiting?.reject(Object.assign(new Error(answer.error.message), { code: answer.error.code }));
    else waiting?.resolve(answer.result as never);
  }
}
