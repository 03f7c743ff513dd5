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
  readonly call: Call;
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Makes the calls of commits that wait for the disk in a thread of their own. To hand each of them to Node's pool takes
 * some 20 microseconds of the event loop, and to be told of its end as much: this thread does both, and the event loop
 * sends it the calls of a turn together. The pool makes them at once, so that none waits for another.
 *
 * The thread begins when there are many calls at once; until then each is made here. A thread that ends by itself, or
 * cannot begin, leaves its calls unanswered: these and all others are made here then, which is only slower.
 */
export class DiskThread {
  /** What the thread runs. A package has JavaScript in the place of TypeScript. */
  static readonly program = join(import.meta.dirname, `disk-thread-main${extname(import.meta.filename)}`);

  readonly #program: string;
  /** Infinite once the thread is lost. */
  #fromCalls: number;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #calls: Call[] = [];
  #madeHere = 0;
  #lastId = 0;

  /**
   * @param program What the thread runs.
   * @param fromCalls How many calls there are at once when it begins.
   */
  constructor(program = DiskThread.program, fromCalls = threadFromCalls) {
    this.#program = program;
    this.#fromCalls = fromCalls;
  }

  /** @throws Error of the file system, with its code. */
  run<Name extends keyof DiskCalls>(name: Name, file: string): ReturnType<DiskCalls[Name]>;
  run(name: keyof DiskCalls, file: string): Promise<unknown> {
    if (this.#worker === undefined && this.#madeHere + 1 >= this.#fromCalls) this.#start();
    return this.#worker === undefined ? this.#make(name, file) : this.#send(name, file);
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
    const call = { id: this.#lastId, name, file };
    this.#calls.push(call);
    if (this.#calls.length === 1) setImmediate(this.#sendAll);
    return new Promise((resolve, reject) => this.#waiting.set(call.id, { call, resolve, reject }));
  }

  readonly #sendAll = (): void => {
    const calls = this.#calls;
    this.#calls = [];
    // It keeps the process alive for as long as a call waits. If it has ended, they were made here.
    this.#worker?.ref();
    this.#worker?.postMessage(calls);
  };

  #start(): void {
    try {
      const worker = new Worker(this.#program, { resourceLimits });
      worker.on("message", (answers: readonly Answer[]) => {
        for (const answer of answers) this.#settle(answer);
        if (this.#waiting.size === 0) worker.unref();
      });
      let problem: string | undefined;
      worker.on("error", (error) => {
        problem = String(error);
      });
      worker.on("exit", (code) => this.#lose(problem ?? `exit code ${code}`));
      this.#worker = worker;
    } catch (error) {
      this.#lose(String(error));
    }
  }

  #lose(problem: string): void {
    this.#fromCalls = Number.POSITIVE_INFINITY;
    this.#worker = undefined;
    process.emitWarning(`the thread of calls to the disk ended (${problem}): they are made without it`);
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { call, resolve, reject } of waiting)
      this.#make(call.name, call.file).then((result) => resolve(result as never), reject);
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("error" in answer) waiting?.reject(Object.assign(new Error(answer.error.message), { code: answer.error.code }));
    else waiting?.resolve(answer.result as never);
  }
}
