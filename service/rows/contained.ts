import { CatalogError } from "@tiltyard/protocol";
import { ChildEnded, type RowsChild } from "./child-process.ts";

/** Whose call it is, and which: a call that ended the child runs apart from others when it is sent again. */
export interface Sender {
  readonly principal: string;
  /** Names the operation and its table. */
  readonly call: string;
}

/** The result of an attempt; `settled` is fulfilled later for rows that still have to be read. */
export interface Attempt<Result> {
  readonly result: Result;
  /** Whether the child lived until the result was complete. */
  readonly settled: Promise<boolean>;
}

/** Keeps a call that ends the child away from the calls of others. */
export interface Contained extends AsyncDisposable {
  /**
   * Runs an attempt in the child. When the child ends meanwhile, a call that can be repeated runs once more, alone in a
   * second child; any other is refused with 503, and runs there when it is sent again.
   *
   * @param canRepeat Decides after the child ended whether the attempt changed nothing.
   * @throws CatalogError InvalidInput for a call that ended the second child, too; ServiceUnavailable
   */
  run<Result>(
    sender: Sender,
    attempt: (child: RowsChild) => Promise<Attempt<Result>>,
    canRepeat: () => boolean,
  ): Promise<Result>;
}

/** How long the calls of a principal run alone after one of them ended two children. */
const apartMs = 60_000;
/** The second child ends when it had no call for this long. */
const apartIdleMs = 10_000;
/** The most calls that wait for the second child. */
const waitingMax = 64;

export function createContained(shared: RowsChild, apart: RowsChild): Contained {
  /** Until when the calls of a sender run alone: a principal, or one call of a principal. */
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

  /** Runs one call after the other, so that a child that ends names its call. */
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
      const { result, settled } = await attempt(apart);
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
        const { result, settled } = await attempt(shared);
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
          "the process that reads rows ended during this request, which changed nothing: try again",
          { cause: error },
        );
      }
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([shared, apart].map((child) => child[Symbol.asyncDispose]()));
    },
  };
}
