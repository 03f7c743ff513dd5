import type { Session } from "./store.ts";
import { toStoredText } from "./transactions.ts";

/** An attempt at a job. */
export interface AttemptRecord {
  readonly number: number;
  readonly claimedAtMillis: number;
  readonly startedAtMillis: number | undefined;
  readonly endedAtMillis: number | undefined;
  /** The reason of its end. */
  readonly reason: string | undefined;
  /** The last lines of its output. */
  readonly logTail: string;
  readonly platform: Readonly<Record<string, string>>;
  readonly samples: readonly ProgressSample[];
}

/** The number of committed rows at a time, in milliseconds since the epoch. */
export type ProgressSample = readonly [atMillis: number, rows: number];

/** Inserts an attempt that has not started. */
export async function insertAttempt(
  { db }: Session,
  job: string,
  { number, claimedAtMillis, platform }: Pick<AttemptRecord, "number" | "claimedAtMillis" | "platform">,
): Promise<void> {
  const empty = { log_tail: "", samples: "[]" };
  await db
    .insertInto("job_attempts")
    .values({ job_id: job, number, claimed_at: claimedAtMillis, platform: JSON.stringify(platform), ...empty })
    .execute();
}

interface Changes {
  readonly startedAtMillis?: number | undefined;
  readonly endedAtMillis?: number | undefined;
  readonly reason?: string | undefined;
  readonly logTail?: string | undefined;
  readonly samples?: readonly ProgressSample[] | undefined;
}

/** Updates an attempt, which need not exist. Its first start, end and reason are final. */
export async function updateAttempt(
  { db }: Session,
  job: string,
  number: number,
  { startedAtMillis, endedAtMillis, reason, logTail, samples }: Changes,
): Promise<void> {
  await db
    .updateTable("job_attempts")
    .set(({ fn, val }) => ({
      started_at: fn.coalesce("started_at", val(startedAtMillis ?? null)),
      ended_at: fn.coalesce("ended_at", val(endedAtMillis ?? null)),
      reason: fn.coalesce("reason", val(reason === undefined ? null : toStoredText(reason))),
      ...(logTail !== undefined && { log_tail: toStoredText(logTail) }),
      ...(samples !== undefined && { samples: JSON.stringify(samples) }),
    }))
    .where("job_id", "=", job)
    .where("number", "=", number)
    .execute();
}

export async function deleteAttempt({ db }: Session, job: string, number: number): Promise<void> {
  await db.deleteFrom("job_attempts").where("job_id", "=", job).where("number", "=", number).execute();
}

/** Lists the attempts at a job, the earliest first. */
export async function listAttempts({ db }: Session, job: string): Promise<AttemptRecord[]> {
  const rows = await db.selectFrom("job_attempts").selectAll().where("job_id", "=", job).orderBy("number").execute();
  return rows.map((row) => ({
    number: row.number,
    claimedAtMillis: row.claimed_at,
    startedAtMillis: row.started_at ?? undefined,
    endedAtMillis: row.ended_at ?? undefined,
    reason: row.reason ?? undefined,
    logTail: row.log_tail,
    platform: JSON.parse(row.platform),
    samples: JSON.parse(row.samples),
  }));
}

/** Returns the progress of an attempt over time. */
export async function listSamples({ db }: Session, job: string, number: number): Promise<ProgressSample[]> {
  const row = await db
    .selectFrom("job_attempts")
    .select("samples")
    .where("job_id", "=", job)
    .where("number", "=", number)
    .executeTakeFirst();
  return JSON.parse(row?.samples ?? "[]");
}
