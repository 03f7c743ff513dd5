import { backoffMs, messageOf } from "@tiltyard/protocol";
import type { Log } from "../log.ts";
import { type TaskKind, taskKinds } from "../store/column-types.ts";
import type { Store } from "../store/store.ts";
import { type ClaimedTask, claimTask, completeTask, listDueTasks, postponeTask, renewTask } from "../store/tasks.ts";
import { type Lease, underLease } from "./lease.ts";

/** The number of concurrent tasks of a process. A task that waits for an unavailable store must not block all others. */
const tasksAtOnce = 4;
/** The number of those of one kind. The purges of a dropped namespace, for example, must not delay the jobs of other tables. */
const ofOneKindAtOnce = 3;
/** The interval at which a process polls for due tasks, including those of other processes. */
const pollEveryMs = 5_000;
const backoff = { firstMs: 1_000, mostMs: 600_000 };
/** The time for which a stopping process waits for work in progress. Another process continues unfinished work. */
const stopsWithinMs = 10_000;

/** Performs a task, from its start after an interruption. @returns The delay of the next call in ms, if any. */
export type TaskHandler = (subject: string, lease: Lease) => Promise<number | undefined> | Promise<void>;

export type Worker = ReturnType<typeof createWorker>;

export function createWorker(deps: {
  readonly store: Store;
  readonly log: Log;
  readonly handlers: Readonly<Record<TaskKind, TaskHandler>>;
}) {
  const { store, log, handlers } = deps;
  const running = new Map<Promise<void>, TaskKind>();
  let timer: NodeJS.Timeout | undefined;
  let claiming: Promise<void> | undefined;
  let isAsked = false;
  let isStopped = false;

  async function work(task: ClaimedTask): Promise<void> {
    const { kind, subject } = task;
    const renew = () => store.write((session) => renewTask(session, task));
    let delayMs: number | undefined;
    let reason: string | undefined;
    try {
      delayMs = (await underLease(renew, async (lease) => handlers[kind](subject, lease))) ?? undefined;
    } catch (error) {
      delayMs = backoffMs(task.attempts, backoff);
      reason = messageOf(error);
      log.warn(
        { err: error, task: kind, subject, attempts: task.attempts },
        "deferred work failed and will be retried",
      );
    }
    await store.write((session) =>
      delayMs === undefined ? completeTask(session, task) : postponeTask(session, task, delayMs, reason),
    );
  }

  /** Reports whether a task of a kind may start in addition to those that run. */
  function hasRoom(kind: TaskKind): boolean {
    const ofKind = [...running.values()].filter((each) => each === kind);
    return !isStopped && running.size < tasksAtOnce && ofKind.length < ofOneKindAtOnce;
  }

  async function claimSome(): Promise<number> {
    let claimed = 0;
    for (const task of await listDueTasks(store.read, tasksAtOnce, taskKinds.filter(hasRoom))) {
      if (!hasRoom(task.kind)) continue;
      const claim = crypto.randomUUID();
      if (!(await store.write((session) => claimTask(session, task, claim)))) continue;
      claimed += 1;
      const done = work({ ...task, claim, attempts: task.attempts + 1 })
        // The claim expires, and the task is retried.
        .catch((error) => log.warn({ err: error, task: task.kind }, "the outcome of deferred work was not recorded"))
        .finally(() => {
          running.delete(done);
          wake();
        });
      running.set(done, task.kind);
    }
    return claimed;
  }

  async function claim(): Promise<void> {
    try {
      do {
        isAsked = false;
        while (!isStopped && running.size < tasksAtOnce && (await claimSome()) > 0);
      } while (isAsked && !isStopped && running.size < tasksAtOnce);
    } catch (error) {
      log.warn({ err: error }, "deferred work cannot be claimed now");
    }
  }

  function wake(): void {
    isAsked = true;
    if (isStopped) return;
    claiming ??= claim().finally(() => {
      claiming = undefined;
    });
  }

  return {
    start: () => {
      timer = setInterval(wake, pollEveryMs);
      wake();
    },
    wake,
    /** Completes all due work. A failed task waits for its retry. */
    drain: async () => {
      do {
        wake();
        await claiming;
        await Promise.all(running.keys());
      } while (running.size > 0 || claiming !== undefined);
    },
    /** Stops claiming tasks and waits briefly for work in progress. */
    stop: async () => {
      isStopped = true;
      clearInterval(timer);
      await claiming;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, stopsWithinMs);
      });
      await Promise.race([Promise.all(running.keys()), late]);
      clearTimeout(timer);
    },
  };
}
