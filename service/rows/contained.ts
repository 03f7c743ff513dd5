import { CatalogError } from "@tiltyard/protocol";
import { ChildEnded, type RowsChild } from "./child-process.ts";

/** The origin of a call. A call that crashed the child runs separately from others when it is repeated. */
export interface Sender {
  readonly principal: string;
  /** The name of the operation and its table. */
  readonly call: string;
}

/** A successful attempt. */
export interface Attempt<Result> {
  readonly result: Result;
  /** Reports, for rows that are still being read, whether the child lived until they were complete. */
  readonly settled?: Promise<boolean>;
}

/** Isolates calls that crash the child from the calls of others. */
export interface Contained extends AsyncDisposable {
  /**
   * Runs an attempt in the child. If the child crashes meanwhile, a call that can be repeated runs once more, alone in
   * a second child. Any other call is rejected with 503 and runs there when it is sent again.
   *
   * @param canRepeat Reports after a crash whether the attempt changed nothing.
   * @throws CatalogError InvalidInput for a call that also crashed the second child; ServiceUnavailable
   */
  run<Result>(
    sender: Sender,
    attempt: (child: RowsChild) => Promise<Attempt<Result>>,
    canRepeat: () => boolean,
  ): Promise<Result>;
}

/** The time for which the calls of a principal run alone after one of them crashed two children. */
const apartMs = 60_000;
/** The idle time after which the second child is stopped. */
const apartIdleMs = 10_000;
/** The maximum number of calls that wait for the second child. */
const waitingMax = 64;
const survived = Promise.resolve(true);

export function createContained(shared: RowsChild, apart: RowsChild): Contained {
  /** The times until which the calls of a sender run alone, by principal or by one call of a principal. */
  const untilMs = new Map<string, number>();
  let queue: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  const keyOf = ({ principal, call }: Sender) => JSON.stringify([principal, call]);
  const mark = (key: string) => {
    for (const [each, until] of untilMs) if (until < Date.now()) untilMs.delete(each);
    untilMs.set(key, Date.now() + apartMs);
  };
  const endApart = () => {
    if (waiting === 0) void apart.end();
  };
  const isMarked = (key: string) => (untilMs.get(key) ?? 0) > Date.now();

  /** Runs the calls one after the other, so that a crash identifies its call. */
  async function runAlone<Result>(
    sender: Sender,
    attempt: (child: RowsChild) => Promise<Attempt<Result>>,
  ): Promise<Result> {
    if (waiting >= waitingMax)
      throw new CatalogError("ServiceUnavailable", "too many calls wait for the process that reads rows: try again");
    waiting += 1;
    const before = queue;
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const finish = () => {
      waiting -= 1;
      resolve();
      setTimeout(endApart, apartIdleMs).unref();
    };
    queue = done;
    try {
      await before;
      const { result, settled = survived } = await attempt(apart);
      void settled.then((isComplete) => {
        if (!isComplete) mark(sender.principal);
        finish();
      });
      untilMs.delete(keyOf(sender));
      return result;
    } catch (error) {
      finish();
      if (!(error instanceof ChildEnded)) throw error;
      mark(sender.principal);
      throw new CatalogError(
        "InvalidInput",
        `this request ended the process that reads rows twice; the second time it ran alone, and the process ${error.message}. ` +
          "Change the request: less data at a time, or a simpler expression",
        { cause: error },
      );
    }
  }

  return {
    run: async (sender, attempt, canRepeat) => {
      if (isMarked(sender.principal) || isMarked(keyOf(sender))) return runAlone(sender, attempt);
      try {
        const { result, settled = survived } = await attempt(shared);
        void settled.then((isComplete) => {
          if (!isComplete) mark(keyOf(sender));
        });
        return result;
      } catch (error) {
        if (!(error instanceof ChildEnded)) throw error;
        if (canRepeat()) return runAlone(sender, attempt);
        mark(keyOf(sender));
        throw new CatalogError(
          "ServiceUnavailable",
          "the process that reads rows stopped during this request, which changed nothing. Retry it",
          { cause: error },
        );
      }
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([shared, apart].map((child) => child[Symbol.asyncDispose]()));
    },
  };
}
