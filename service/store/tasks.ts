import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** The kinds of work that is done after the request that asks for it is answered. */
const taskKinds = ["finish", "adopt", "purge", "forget", "retain", "automate", "end_record"] as const;
export type TaskKind = (typeof taskKinds)[number];

/** Deferred work. There is at most one task for a kind and a subject. */
export interface Task {
  readonly kind: TaskKind;
  /** What is to be worked on, as the kind names it. */
  readonly subject: string;
}

/** A task that this process works on until its claim expires. */
export interface ClaimedTask extends Task {
  readonly claim: string;
  /** How often it was begun, this time included. */
  readonly attempts: number;
}

const insert = statement((db, p: Task & { delay: number }, { now }) =>
  db
    .insertInto("tasks")
    .values((eb) => ({ kind: p.kind, subject: p.subject, not_before: eb(now, "+", p.delay), created_at: now }))
    .onConflict((conflict) => conflict.columns(["kind", "subject"]).doNothing()),
);

/** Notes work to be done, unless it is noted already. */
export async function insertTask(session: Session, { kind, subject }: Task, delayMs = 0): Promise<void> {
  await session.run(insert, { kind, subject, delay: delayMs });
}

const noteAnew = statement((db, p: Task, { now }) =>
  db
    .insertInto("tasks")
    .values({ kind: p.kind, subject: p.subject, not_before: now, created_at: now })
    .onConflict((conflict) =>
      conflict.columns(["kind", "subject"]).doUpdateSet({ claim: null, claimed_until: 0, not_before: now }),
    ),
);

/** Notes work to be done from the beginning, also when a worker has claimed it: what it has read is out of date. */
export async function noteTask(session: Session, { kind, subject }: Task): Promise<void> {
  await session.run(noteAnew, { kind, subject });
}

const hasten = statement((db, p: Task & { delay: number }, { now }) =>
  db
    .updateTable("tasks")
    .set((eb) => ({ not_before: eb(now, "+", p.delay) }))
    .where("kind", "=", p.kind)
    .where("subject", "=", p.subject)
    .where("claim", "is", null),
);

/** Changes how long unclaimed work is to wait. */
export async function delayTask(session: Session, { kind, subject }: Task, delayMs: number): Promise<void> {
  await session.run(hasten, { kind, subject, delay: delayMs });
}

const remove = statement((db, p: Task) =>
  db.deleteFrom("tasks").where("kind", "=", p.kind).where("subject", "=", p.subject),
);

/** Deletes a task that is no longer needed. */
export async function deleteTask(session: Session, { kind, subject }: Task): Promise<void> {
  await session.run(remove, { kind, subject });
}

const hold = statement((db, p: Task) =>
  db
    .updateTable("tasks")
    .set((eb) => ({ attempts: eb.ref("attempts") }))
    .where("kind", "=", p.kind)
    .where("subject", "=", p.subject),
);

/**
 * @returns Whether work is still to be done. It is when the transaction commits, too: of this one and one that deletes the
 *   task, one is retried, because both change its row.
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

/** Tasks that may be claimed now, those that wait longest first. */
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
    .where("kind", "=", p.kind)
    .where("subject", "=", p.subject)
    .where("not_before", "<=", now)
    .where("claimed_until", "<=", now),
);

/** @returns Whether the task is this claim's now; false when another process has it. */
export async function claimTask(session: Session, task: Task, name: string, leaseMs: number): Promise<boolean> {
  const { kind, subject } = task;
  return (await session.run(claim, { kind, subject, claim: name, lease: leaseMs })) > 0;
}

const renew = statement((db, p: Task & { claim: string; lease: number }, { now }) =>
  db
    .updateTable("tasks")
    .set((eb) => ({ claimed_until: eb(now, "+", p.lease) }))
    .where("kind", "=", p.kind)
    .where("subject", "=", p.subject)
    .where("claim", "=", p.claim),
);

/** @returns False when the claim has expired and another process has the task, or when the task is gone. */
export async function renewTask(session: Session, task: ClaimedTask, leaseMs: number): Promise<boolean> {
  return (await session.run(renew, { ...keyOf(task), lease: leaseMs })) > 0;
}

const complete = statement((db, p: Task & { claim: string }) =>
  db.deleteFrom("tasks").where("kind", "=", p.kind).where("subject", "=", p.subject).where("claim", "=", p.claim),
);

/** Notes that the work of a claim is done. */
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
    .where("kind", "=", p.kind)
    .where("subject", "=", p.subject)
    .where("claim", "=", p.claim),
);

/** Releases a claim: the task is due later. */
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

/** How many tasks of each kind are due, and how many failed when they were last tried. */
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
