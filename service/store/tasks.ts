import { type TaskKind, taskKinds } from "./column-types.ts";
import { isExpired, leaseMs } from "./leases.ts";
import type { Session } from "./store.ts";

/** A unit of deferred work. At most one task exists for each kind and subject. */
export interface Task {
  readonly kind: TaskKind;
  /** The object of the work, in the format of the kind. */
  readonly subject: string;
}

export interface ClaimedTask extends Task {
  readonly claim: string;
  readonly attempts: number;
}

export async function insertTask({ db, now }: Session, { kind, subject }: Task, delayMs = 0): Promise<void> {
  await db
    .insertInto("tasks")
    .values((eb) => ({ kind, subject, notBefore: eb(now, "+", delayMs), createdAtMillis: now }))
    .onConflict((conflict) => conflict.columns(["kind", "subject"]).doNothing())
    .execute();
}

/** Inserts a task or restarts it. A worker that has already claimed it may have read outdated state. */
export async function noteTask({ db, now }: Session, { kind, subject }: Task): Promise<void> {
  await db
    .insertInto("tasks")
    .values({ kind, subject, notBefore: now, createdAtMillis: now })
    .onConflict((conflict) =>
      conflict.columns(["kind", "subject"]).doUpdateSet({ claim: null, claimedUntil: 0, notBefore: now }),
    )
    .execute();
}

export async function delayTask({ db, now }: Session, { kind, subject }: Task, delayMs: number): Promise<void> {
  await db
    .updateTable("tasks")
    .set((eb) => ({ notBefore: eb(now, "+", delayMs) }))
    .where((eb) => eb.and({ kind, subject }))
    .where("claim", "is", null)
    .execute();
}

/** Ends the delays that no task has by itself: the clock was set back since. Purges may wait for years. */
export async function hastenTasks({ db, now }: Session, delayMaxMs: number): Promise<void> {
  await db
    .updateTable("tasks")
    .set({ notBefore: now })
    .where("kind", "<>", "purge")
    .where((eb) => eb("notBefore", ">", eb(now, "+", delayMaxMs)))
    .execute();
}

export async function deleteTask({ db }: Session, { kind, subject }: Task): Promise<void> {
  await db.deleteFrom("tasks").where("kind", "=", kind).where("subject", "=", subject).execute();
}

/** Locks a task against a concurrent deletion until the transaction ends. @returns Whether the task exists. */
export async function holdTask({ db }: Session, { kind, subject }: Task): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("tasks")
    .set((eb) => ({ attempts: eb.ref("attempts") }))
    .where((eb) => eb.and({ kind, subject }))
    .executeTakeFirst();
  return numUpdatedRows > 0;
}

/** Lists due tasks of some kinds. The longest due tasks are first. */
export async function listDueTasks(
  session: Session,
  limit: number,
  kinds: readonly TaskKind[] = taskKinds,
): Promise<(Task & { readonly attempts: number })[]> {
  const { db, now } = session;
  return db
    .selectFrom("tasks")
    .select(["kind", "subject", "attempts"])
    .where("notBefore", "<=", now)
    .$if(kinds.length < taskKinds.length, (query) => query.where("kind", "in", kinds))
    .where(isExpired(session, "tasks.claimedUntil"))
    .orderBy("notBefore")
    .limit(limit)
    .execute();
}

/** Claims a task. @returns False if another process has claimed it. */
export async function claimTask(session: Session, { kind, subject }: Task, claim: string): Promise<boolean> {
  const { db, now } = session;
  const { numUpdatedRows } = await db
    .updateTable("tasks")
    .set((eb) => ({ claim, claimedUntil: eb(now, "+", leaseMs), attempts: eb("attempts", "+", 1) }))
    .where((eb) => eb.and({ kind, subject }))
    .where("notBefore", "<=", now)
    .where(isExpired(session, "tasks.claimedUntil"))
    .executeTakeFirst();
  return numUpdatedRows > 0;
}

/** Renews a claim. @returns False if another process has claimed the task since, or if the task no longer exists. */
export async function renewTask({ db, now }: Session, task: ClaimedTask): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("tasks")
    .set((eb) => ({ claimedUntil: eb(now, "+", leaseMs) }))
    .where((eb) => eb.and(keyOf(task)))
    .executeTakeFirst();
  return numUpdatedRows > 0;
}

/** Deletes a finished task unless it was restarted or another process has claimed it. */
export async function completeTask({ db }: Session, task: ClaimedTask): Promise<void> {
  await db
    .deleteFrom("tasks")
    .where((eb) => eb.and(keyOf(task)))
    .execute();
}

export async function postponeTask(
  { db, now }: Session,
  task: ClaimedTask,
  delayMs: number,
  reason: string | undefined,
): Promise<void> {
  await db
    .updateTable("tasks")
    .set((eb) => ({
      claim: null,
      claimedUntil: 0,
      notBefore: eb(now, "+", Math.round(delayMs)),
      reason: reason ?? null,
    }))
    .where((eb) => eb.and(keyOf(task)))
    .execute();
}

/** Counts, for each kind, the due tasks and the tasks whose last attempt failed. */
export async function countTasks({
  db,
  now,
}: Session): Promise<{ readonly kind: TaskKind; readonly due: number; readonly failing: number }[]> {
  const counts = db
    .selectFrom("tasks")
    .select((eb) => ["kind", eb.fn.countAll<number>().as("count")])
    .groupBy("kind");
  const due = await counts.where("notBefore", "<=", now).execute();
  const failing = await counts.where("reason", "is not", null).execute();
  const of = (rows: typeof due, kind: TaskKind) => rows.find((row) => row.kind === kind)?.count ?? 0;
  return taskKinds.map((kind) => ({ kind, due: of(due, kind), failing: of(failing, kind) }));
}

function keyOf({ kind, subject, claim }: ClaimedTask) {
  return { kind, subject, claim };
}
