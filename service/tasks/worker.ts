import { backoffMs, messageOf } from "@tiltyard/protocol";
import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";
import {
  type ClaimedTask,
  claimTask,
  completeTask,
  listDueTasks,
  postponeTask,
  renewTask,
  type TaskKind,
} from "../store/tasks.ts";
import { type Lease, leaseMs, underLease } from "./lease.ts";

/** How many tasks one process works on at a time: one that waits for an unavailable store holds up no other. */
const tasksAtOnce = 4;
/** How often a process looks for tasks of other processes, and for tasks that are due. */
const pollEveryMs = 5_000;
const backoff = { firstMs: 1_000, mostMs: 600_000 };
/** How long a stopping process waits for work in progress. Another process takes over the rest. */
const stopsWithinMs = 10_000;

/**
 * Does the work of one kind of task. It may be interrupted anywhere and is then retried from the start.
 *
 * @returns How long to wait before it is called again, in milliseconds; undefined when the work is done.
 */
export type TaskHandler = (subject: string, lease: Lease) => Promise<number | undefined>;

export interface Worker {
  /** Starts looking for work. */
  start(): void;
  /** Looks for work now: some was just noted. */
  wake(): void;
  /** Does all work that is due, and resolves when there is none. A failed task is left for its retry. */
  drain(): Promise<void>;
  /** Claims no more tasks, and waits a while for work in progress. */
  stop(): Promise<void>;
}

/** Works on the tasks of the database, which all processes that use it share. */
export function createWorker(parts: {
  readonly store: Store;
  readonly log: Log;
  readonly handlers: Readonly<Record<TaskKind, TaskHandler>>;
}): Worker {
  const { store, log, handlers } = parts;
  const running = new Set<Promise<void>>();
  let timer: NodeJS.Timeout | undefined;
  let claiming: Promise<void> | undefined;
  let isAsked = false;
  let isStopped = false;

  async function work(task: ClaimedTask): Promise<void> {
    const { kind, subject } = task;
    const renew = () => store.write((session) => renewTask(session, task, leaseMs));
    let delayMs: number | undefined;
    let reason: string | undefined;
    try {
      delayMs = await underLease(renew, (lease) => handlers[kind](subject, lease));
    } catch (error) {
      delayMs = backoffMs(task.attempts, backoff);
      reason = messageOf(error);
      log.warn({ err: error, task: kind, subject, attempts: task.attempts }, "deferred work failed and is tried again");
    }
    await store.write((session) =>
      delayMs === undefined ? completeTask(session, task) : postponeTask(session, task, delayMs, reason),
    );
  }

  async function claimSome(): Promise<number> {
    let claimed = 0;
    for (const task of await listDueTasks(store.read, tasksAtOnce)) {
      if (isStopped || running.size >= tasksAtOnce) break;
      const claim = crypto.randomUUID();
      if (!(await store.write((session) => claimTask(session, task, claim, leaseMs)))) continue;
      claimed += 1;
      const done = work({ ...task, claim, attempts: task.attempts + 1 })
        // The claim expires, and the task is retried.
        .catch((error) => log.warn({ err: error, task: task.kind }, "what became of deferred work is not noted"))
        .finally(() => {
          running.delete(done);
          wake();
        });
      running.add(done);
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
    drain: async () => {
      do {
        wake();
        await claiming;
        await Promise.all(running);
      } while (running.size > 0 || claiming !== undefined);
    },
    stop: async () => {
      isStopped = true;
      clearInterval(timer);
      await claiming;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, stopsWithinMs);
      });
      await Promise.race([Promise.all(running), late]);
      clearTimeout(timer);
    },
  };
}
