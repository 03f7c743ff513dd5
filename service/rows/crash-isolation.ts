import { CatalogError } from "@tiltyard/protocol";
import { ChildEnded, type RowsChild } from "./child-process.ts";

/** The origin of a call. */
export interface CallOrigin {
  readonly principal: string;
  /** The name of the operation and its table. */
  readonly call: string;
}

/** A successful attempt. */
export interface Attempt<Result> {
  readonly result: Result;
  /** Resolves after the end of rows that are still being read: true if they are complete, false if the child crashed. */
  readonly completed?: Promise<boolean>;
}

/** Isolates calls that crash the child from the calls of others. */
export interface CrashIsolation extends AsyncDisposable {
  /**
   * Runs an attempt in the shared child. If that child crashes meanwhile, a call that can be repeated runs once more,
   * alone in the isolated child. Any other call is rejected with 503 and runs there when it is sent again.
   *
   * @param canRepeat Reports after a crash whether the attempt changed nothing.
   * @throws CatalogError InvalidInput for a call that also crashed the isolated child; ServiceUnavailable
   */
  run<Result>(
    origin: CallOrigin,
    attempt: (child: RowsChild) => Promise<Attempt<Result>>,
    canRepeat: () => boolean,
  ): Promise<Result>;
}

/** The time for which calls remain isolated: one call after its first crash, and all calls of its principal after the second. */
const isolationMs = 60_000;
/** The idle time after which the isolated child is stopped. */
const idleMs = 10_000;
/** The maximum number of calls that wait for the isolated child. */
const waitingMax = 64;
/** The completion of a result that is not streamed. */
const alreadyCompleted = Promise.resolve(true);

export function createCrashIsolation(shared: RowsChild, isolated: RowsChild): CrashIsolation {
  /** The times until which calls are isolated, by their principal or by one call of a principal. */
  const isolatedUntilMs = new Map<string, number>();
  let queue: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  const keyOf = ({ principal, call }: CallOrigin) => JSON.stringify([principal, call]);
  const isolate = (key: string) => {
    for (const [each, until] of isolatedUntilMs) if (until < Date.now()) isolatedUntilMs.delete(each);
    isolatedUntilMs.set(key, Date.now() + isolationMs);
  };
  const endIsolated = () => {
    if (waiting === 0) void isolated.end();
  };
  const isIsolated = (key: string) => (isolatedUntilMs.get(key) ?? 0) > Date.now();

  /** Runs calls in the isolated child one after the other, so that a crash identifies its call. */
  async function runAlone<Result>(
    origin: CallOrigin,
    attempt: (child: RowsChild) => Promise<Attempt<Result>>,
  ): Promise<Result> {
    if (waiting >= waitingMax)
      throw new CatalogError("ServiceUnavailable", "too many calls wait for the process that reads rows. Retry later");
    waiting += 1;
    const before = queue;
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const finish = () => {
      waiting -= 1;
      resolve();
      setTimeout(endIsolated, idleMs).unref();
    };
    queue = done;
    try {
      await before;
      const { result, completed = alreadyCompleted } = await attempt(isolated);
      void completed.then((isComplete) => {
        if (!isComplete) isolate(origin.principal);
        finish();
      });
      isolatedUntilMs.delete(keyOf(origin));
      return result;
    } catch (error) {
      finish();
      if (!(error instanceof ChildEnded)) throw error;
      isolate(origin.principal);
      throw new CatalogError(
        "InvalidInput",
        `this request crashed the process that reads rows, even when it ran alone: the process ${error.message}. ` +
          "Change the request: less data at a time, or a simpler expression",
        { cause: error },
      );
    }
  }

  return {
    run: async (origin, attempt, canRepeat) => {
      if (isIsolated(origin.principal) || isIsolated(keyOf(origin))) return runAlone(origin, attempt);
      try {
        const { result, completed = alreadyCompleted } = await attempt(shared);
        void completed.then((isComplete) => {
          if (!isComplete) isolate(keyOf(origin));
        });
        return result;
      } catch (error) {
        if (!(error instanceof ChildEnded)) throw error;
        if (canRepeat()) return runAlone(origin, attempt);
        isolate(keyOf(origin));
        throw new CatalogError(
          "ServiceUnavailable",
          "the process that reads rows stopped during this request, which changed nothing. Retry it",
          { cause: error },
        );
      }
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([shared, isolated].map((child) => child[Symbol.asyncDispose]()));
    },
  };
}
