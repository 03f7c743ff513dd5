import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** The kinds of work that follows the response to the request that caused it. */
const taskKinds = ["finish", "adopt", "purge", "forget", "retain", "automate", "end_record", "record_columns"] as const;
export type TaskKind = (typeof taskKinds)[number];

/** A unit of deferred work. At most one task exists for each kind and subject. */
export interface Task {
  readonly kind: TaskKind;
  /** The object of the work, in the format of the kind. */
  readonly subject: string;
}

/** A task that this process has claimed until the claim expires. */
export interface ClaimedTask extends Task {
  readonly claim: string;
  /** The number of started attempts, including this one. */
  readonly attempts: number;
}

const insert = statement((db, p: Task & { delay: number }, { now }) =>
  db
    .insertInto("tasks")
    .values((eb) => ({ ...pick(p, "kind", "subject"), not_before: eb(now, "+", p.delay), created_at: now }))
    .onConflict((conflict) => conflict.columns(["kind", "subject"]).doNothing()),
);

/** Inserts a task unless it exists. */
export async function insertTask(session: Session, { kind, subject }: Task, delayMs = 0): Promise<void> {
  await session.run(insert, { kind, subject, delay: delayMs });
}

const noteAnew = statement((db, p: Task, { now }) =>
  db
    .insertInto("tasks")
    .values({ ...pick(p, "kind", "subject"), not_before: now, created_at: now })
    .onConflict((conflict) =>
      conflict.columns(["kind", "subject"]).doUpdateSet({ claim: null, claimed_until: 0, not_before: now }),
    ),
);

/** Inserts a task or restarts it. A worker that has already claimed it may have read outdated state. */
export async function noteTask(session: Session, { kind, subject }: Task): Promise<void> {
  await session.run(noteAnew, { kind, subject });
}

const hasten = statement((db, p: Task & { delay: number }, { now }) =>
  db
    .updateTable("tasks")
    .set((eb) => ({ not_before: eb(now, "+", p.delay) }))
    .where(({ and }) => and(pick(p, "kind", "subject")))
    .where("claim", "is", null),
);

/** Changes the delay of an unclaimed task. */
export async function delayTask(session: Session, { kind, subject }: Task, delayMs: number): Promise<void> {
  await session.run(hasten, { kind, subject, delay: delayMs });
}

const remove = statement((db, p: Task) => db.deleteFrom("tasks").where(({ and }) => and(pick(p, "kind", "subject"))));

export async function deleteTask(session: Session, { kind, subject }: Task): Promise<void> {
  await session.run(remove, { kind, subject });
}

const hold = statement((db, p: Task) =>
  db
    .updateTable("tasks")
    .set((eb) => ({ attempts: eb.ref("attempts") }))
    .where(({ and }) => and(pick(p, "kind", "subject"))),
);

/**
 * Locks a task until the transaction ends. A concurrent transaction that deletes the task conflicts, because both write
 * its row.
 *
 * @returns Whether the task exists.
 */
export async function holdTask(session: Session, { kind, subject }: Task): Promise<boolean> {
  return (await session.run(hold, { kind, subject })) > 0;
}

const due = statement((db, p: { limit: number }, { now }) =>
  db
    .selectFrom("tasks")
    .select(["kind", "subject", "attempts"])
    .where("not_before", "<=", now)
    .where("claimed_until", "<=", now)
    .orderBy("not_before")
    .limit(p.limit),
);

/** Lists tasks that can be claimed now, the longest waiting first. */
export async function listDueTasks(session: Session, limit: number): Promise<(Task & { readonly attempts: number })[]> {
  return (await session.all(due, { limit })).map((row) => ({ ...row, kind: row.kind as TaskKind }));
}

const claim = statement((db, p: Task & { claim: string; lease: number }, { now }) =>
  db
    .updateTable("tasks")
    .set((eb) => ({
      claim: p.claim,
      claimed_until: eb(now, "+", p.lease),
      attempts: eb("attempts", "+", 1),
    }))
    .where(({ and }) => and(pick(p, "kind", "subject")))
    .where("not_before", "<=", now)
    .where("claimed_until", "<=", now),
);

/** Claims a task. @returns False if another process has claimed it. */
export async function claimTask(session: Session, task: Task, name: string, leaseMs: number): Promise<boolean> {
  const { kind, subject } = task;
  return (await session.run(claim, { kind, subject, claim: name, lease: leaseMs })) > 0;
}

const renew = statement((db, p: Task & { claim: string; lease: number }, { now }) =>
  db
    .updateTable("tasks")
    .set((eb) => ({ claimed_until: eb(now, "+", p.lease) }))
    .where(({ and }) => and(pick(p, "kind", "subject", "claim"))),
);

/** Renews a claim. @returns False if another process has claimed the task since, or if the task no longer exists. */
export async function renewTask(session: Session, task: ClaimedTask, leaseMs: number): Promise<boolean> {
  return (await session.run(renew, { ...keyOf(task), lease: leaseMs })) > 0;
}

const complete = statement((db, p: Task & { claim: string }) =>
  db.deleteFrom("tasks").where(({ and }) => and(pick(p, "kind", "subject", "claim"))),
);

/** Deletes a finished task unless it was restarted or another process has claimed it. */
export async function completeTask(session: Session, task: ClaimedTask): Promise<void> {
  await session.run(complete, keyOf(task));
}

const postpone = statement((db, p: Task & { claim: string; delay: number; reason: string | null }, { now }) =>
  db
    .updateTable("tasks")
    .set((eb) => ({
      claim: null,
      claimed_until: 0,
      not_before: eb(now, "+", p.delay),
      reason: p.reason,
    }))
    .where(({ and }) => and(pick(p, "kind", "subject", "claim"))),
);

/** Releases a claim and delays the task. */
export async function postponeTask(
  session: Session,
  task: ClaimedTask,
  delayMs: number,
  reason: string | undefined,
): Promise<void> {
  await session.run(postpone, { ...keyOf(task), delay: Math.round(delayMs), reason: reason ?? null });
}

const waiting = statement((db, _: Record<never, never>, { now }) =>
  db
    .selectFrom("tasks")
    .select((eb) => ["kind" as const, eb.fn.countAll<number>().as("count")])
    .where("not_before", "<=", now)
    .groupBy("kind"),
);

const failing = statement((db, _: Record<never, never>) =>
  db
    .selectFrom("tasks")
    .select((eb) => ["kind" as const, eb.fn.countAll<number>().as("count")])
    .where("reason", "is not", null)
    .groupBy("kind"),
);

/** Counts, for each kind, the due tasks and the tasks whose last attempt failed. */
export async function countTasks(
  session: Session,
): Promise<{ readonly kind: TaskKind; readonly due: number; readonly failing: number }[]> {
  const [dueRows, failingRows] = await Promise.all([session.all(waiting, {}), session.all(failing, {})]);
  const of = (rows: readonly { kind: string; count: number }[], kind: string) =>
    Number(rows.find((row) => row.kind === kind)?.count ?? 0);
  return taskKinds.map((kind) => ({ kind, due: of(dueRows, kind), failing: of(failingRows, kind) }));
}

function keyOf({ kind, subject, claim: name }: ClaimedTask) {
  return { kind, subject, claim: name };
}
