import { sql } from "kysely";
import type { RecordOf } from "./schema.ts";
import type { Session } from "./store.ts";
import { toStoredText } from "./transactions.ts";

export type AttemptRecord = RecordOf<"jobAttempts">;

export async function insertAttempt(
  { db }: Session,
  attempt: Pick<AttemptRecord, "jobId" | "number" | "claimedAtMillis" | "platform">,
): Promise<void> {
  await db
    .insertInto("jobAttempts")
    .values({ ...attempt, logTail: "", samples: [] })
    .execute();
}

type Changeable = "startedAtMillis" | "endedAtMillis" | "reason" | "logTail" | "samples";
type Changes = { readonly [Name in Changeable]?: AttemptRecord[Name] | undefined };

/** Updates an attempt, which need not exist. Its first start, end and reason are final. */
export async function updateAttempt(
  { db }: Session,
  job: string,
  number: number,
  { startedAtMillis, endedAtMillis, reason, logTail, samples }: Changes,
): Promise<void> {
  await db
    .updateTable("jobAttempts")
    .set(({ fn, val }) => ({
      startedAtMillis: fn.coalesce("startedAtMillis", val(startedAtMillis ?? null)),
      endedAtMillis: fn.coalesce("endedAtMillis", val(endedAtMillis ?? null)),
      reason: fn.coalesce("reason", val(reason === undefined ? null : toStoredText(reason))),
      ...(logTail !== undefined && { logTail: toStoredText(logTail) }),
      ...(samples !== undefined && { samples }),
    }))
    .where((eb) => eb.and({ jobId: job, number }))
    .execute();
}

export async function deleteAttempt({ db }: Session, job: string, number: number): Promise<void> {
  await db.deleteFrom("jobAttempts").where("jobId", "=", job).where("number", "=", number).execute();
}

export async function findAttempt({ db }: Session, job: string, number: number): Promise<AttemptRecord | undefined> {
  const attempts = db.selectFrom("jobAttempts").selectAll().where("jobId", "=", job);
  return attempts.where("number", "=", number).executeTakeFirst();
}

export async function listAttempts({ db }: Session, job: string): Promise<AttemptRecord[]> {
  return db.selectFrom("jobAttempts").selectAll().where("jobId", "=", job).orderBy("number").execute();
}

/** Returns the time in milliseconds that all attempts at a job together have run until now. */
export async function runningMillis({ db, time }: Session, job: string): Promise<number> {
  const { millis } = await db
    .selectFrom("jobAttempts")
    .select(({ fn }) =>
      fn.sum(sql`coalesce(${sql.ref("endedAtMillis")}, ${time()}) - ${sql.ref("startedAtMillis")}`).as("millis"),
    )
    .where("jobId", "=", job)
    .executeTakeFirstOrThrow();
  return Number(millis ?? 0);
}
