import { CatalogError, requireClient } from "@tiltyard/protocol";
import { ChildEnded, ChildStopped, type RowsChild } from "./child-process.ts";

/** The times for which the child may compute a response, or the next rows of one. */
export interface Deadlines {
  readonly sharedMs: number;
  /** The time in the isolated child. If it is longer, a call that can be repeated has it after the shared one. */
  readonly aloneMs: number;
}

export interface CallOrigin {
  readonly principal: string;
  /** The name of the operation and its table. */
  readonly call: string;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal | undefined;
  readonly deadlines: Deadlines;
}

/** The child during an attempt, which stops it when the attempt exceeds its deadline. */
export interface WatchedChild extends Pick<RowsChild, "call" | "endings"> {
  /** Awaits a part of the response. @throws ChildEnded if the child is stopped because of this attempt. */
  within<Part>(part: Promise<Part>): Promise<Part>;
}

export interface Attempt<Result> {
  readonly result: Result;
  /** Resolves after the end of rows that are still being read: true if they are complete, false if the child crashed. */
  readonly completed?: Promise<boolean>;
}

/** Isolates calls that crash the child or exceed their deadline from the calls of others. */
export interface CrashIsolation extends AsyncDisposable {
  /**
   * Runs an attempt in the shared child. If that child crashes meanwhile, a call that can be repeated runs once more,
   * alone in the isolated child. Any other call is rejected with 503 and runs there when it is sent again.
   *
   * A call that exceeds its deadline, or continues without its client, stops the child, because the library cannot
   * cancel work. Its principal is isolated, and calls of others run once more in the next shared child.
   *
   * @param canRepeat Reports after a crash whether the attempt changed nothing.
   * @throws CatalogError InvalidInput for a call that also crashed the isolated child, exceeded its deadline or lost its client;
   *   ServiceUnavailable
   */
  run<Result>(
    origin: CallOrigin,
    attempt: (child: WatchedChild) => Promise<Attempt<Result>>,
    canRepeat: () => boolean,
  ): Promise<Result>;
}

/** The time for which calls remain isolated: one call after its first crash, and all calls of its principal after the second. */
const isolationMs = 60_000;
/** The time for which a call may continue without its client. Stopping the child costs the calls of others more. */
const graceMs = 5_000;
const idleMs = 10_000;
const waitingMax = 64;
/** The completion of a result that is not streamed. */
const alreadyCompleted = Promise.resolve(true);

/** The child was stopped because this call exceeded its deadline. */
class Overrun extends ChildEnded {
  override readonly name = "Overrun";
}

export function createCrashIsolation(shared: RowsChild, isolated: RowsChild): CrashIsolation {
  /** The times until which calls are isolated, by their principal or by one call of a principal. */
  const isolatedUntilMs = new Map<string, number>();
  /** The calls that wait for the isolated child by their principals, which take turns. */
  const queues = new Map<string, (() => void)[]>();
  let isBusy = false;

  const keyOf = ({ principal, call }: CallOrigin) => JSON.stringify([principal, call]);
  const isolate = (key: string) => {
    for (const [each, until] of isolatedUntilMs) if (until < Date.now()) isolatedUntilMs.delete(each);
    isolatedUntilMs.set(key, Date.now() + isolationMs);
  };
  const endIsolated = () => {
    if (!isBusy) void isolated.end();
  };
  const isIsolated = (key: string) => (isolatedUntilMs.get(key) ?? 0) > Date.now();

  function watch(child: RowsChild, { principal, call, signal }: CallOrigin, deadlineMs: number): WatchedChild {
    const within = async <Part>(part: Promise<Part>): Promise<Part> => {
      const { promise: overrun, reject } = Promise.withResolvers<never>();
      const stop = (ms: number, where: string) => {
        const reason = `computed for more than ${ms / 1000} seconds${where}`;
        isolate(principal);
        child.stop(`${call} of ${principal} ${reason}`);
        reject(new Overrun(reason));
      };
      let timer = setTimeout(stop, deadlineMs, deadlineMs, "");
      const onAbort = () => {
        clearTimeout(timer);
        timer = setTimeout(stop, graceMs, graceMs, " without its client");
      };
      if (signal?.aborted) onAbort();
      signal?.addEventListener("abort", onAbort);
      try {
        return await Promise.race([part, overrun]);
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      }
    };
    return {
      call: (...request) => within(child.call(...request)),
      within,
      get endings() {
        return child.endings;
      },
    };
  }

  function beginNext(): void {
    const [first] = queues;
    isBusy = first !== undefined;
    if (first === undefined) return;
    const [principal, [begin, ...others]] = first;
    queues.delete(principal);
    if (others.length > 0) queues.set(principal, others);
    begin?.();
  }

  /** Runs calls in the isolated child one after the other, so that a crash identifies its call. */
  async function runAlone<Result>(origin: CallOrigin, attempt: (child: WatchedChild) => Promise<Attempt<Result>>) {
    const { principal } = origin;
    const waiting = queues.get(principal) ?? [];
    if (waiting.length >= waitingMax)
      throw new CatalogError("ServiceUnavailable", "too many calls wait for the process that reads rows. Retry later");
    await new Promise<void>((begin) => {
      queues.set(principal, [...waiting, begin]);
      if (!isBusy) beginNext();
    });
    const finish = () => {
      beginNext();
      setTimeout(endIsolated, idleMs).unref();
    };
    const begunMs = Date.now();
    try {
      requireClient(origin.signal);
      const { result, completed = alreadyCompleted } = await attempt(watch(isolated, origin, origin.deadlines.aloneMs));
      void completed.then((isComplete) => {
        if (!isComplete || Date.now() - begunMs > origin.deadlines.sharedMs) isolate(principal);
        finish();
      });
      isolatedUntilMs.delete(keyOf(origin));
      return result;
    } catch (error) {
      finish();
      if (!(error instanceof ChildEnded)) throw error;
      if (error instanceof Overrun) throw tooSlow(error);
      isolate(principal);
      throw tooMuch(
        error,
        `this request crashed the process that reads rows, even when it ran alone: the process ${error.message}`,
      );
    }
  }

  return {
    run: async function run(origin, attempt, canRepeat) {
      requireClient(origin.signal);
      const { sharedMs, aloneMs } = origin.deadlines;
      if (isIsolated(origin.principal) || isIsolated(keyOf(origin))) return runAlone(origin, attempt);
      try {
        const { result, completed = alreadyCompleted } = await attempt(watch(shared, origin, sharedMs));
        void completed.then((isComplete) => {
          if (!isComplete) isolate(keyOf(origin));
        });
        return result;
      } catch (error) {
        if (!(error instanceof ChildEnded)) throw error;
        if (error instanceof Overrun && (origin.signal?.aborted || sharedMs === aloneMs)) throw tooSlow(error);
        if (error instanceof ChildStopped && canRepeat()) return run(origin, attempt, canRepeat);
        if (canRepeat()) return runAlone(origin, attempt);
        if (!(error instanceof ChildStopped)) isolate(keyOf(origin));
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

function tooSlow(error: Overrun): CatalogError {
  return tooMuch(error, `the process that reads rows ${error.message} for this request`);
}

function tooMuch(cause: ChildEnded, problem: string): CatalogError {
  const advice = "Change the request: less data at a time, or a simpler expression";
  return new CatalogError("InvalidInput", `${problem}. ${advice}`, { cause });
}
