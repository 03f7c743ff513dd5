import { sql } from "kysely";
import type { Schema } from "./schema.ts";
import { pick, statement } from "./statement.ts";
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

type NewRow = Pick<Schema["job_attempts"], "job_id" | "number" | "claimed_at" | "platform">;
const insert = statement((db, p: NewRow) =>
  db
    .insertInto("job_attempts")
    .values({ ...pick(p, "job_id", "number", "claimed_at", "platform"), log_tail: "", samples: "[]" }),
);

/** Inserts an attempt that has not started. */
export async function insertAttempt(
  session: Session,
  job: string,
  { number, claimedAtMillis, platform }: Pick<AttemptRecord, "number" | "claimedAtMillis" | "platform">,
): Promise<void> {
  await session.run(insert, {
    job_id: job,
    number,
    claimed_at: claimedAtMillis,
    platform: JSON.stringify(platform),
  });
}

interface Changes {
  readonly startedAtMillis?: number | undefined;
  readonly endedAtMillis?: number | undefined;
  readonly reason?: string | undefined;
  readonly logTail?: string | undefined;
  readonly samples?: readonly ProgressSample[] | undefined;
}
type ChangedRow = Pick<Schema["job_attempts"], "job_id" | "number" | "started_at" | "ended_at" | "reason"> & {
  readonly log_tail: string | null;
  readonly samples: string | null;
};
const update = statement((db, p: ChangedRow) =>
  db
    .updateTable("job_attempts")
    .set(({ fn, ref }) => ({
      started_at: fn.coalesce("started_at", sql<number>`${p.started_at}`),
      ended_at: fn.coalesce("ended_at", sql<number>`${p.ended_at}`),
      reason: fn.coalesce("reason", sql<string>`${p.reason}`),
      log_tail: fn.coalesce(sql<string>`${p.log_tail}`, ref("log_tail")),
      samples: fn.coalesce(sql<string>`${p.samples}`, ref("samples")),
    }))
    .where("job_id", "=", p.job_id)
    .where("number", "=", p.number),
);

/** Updates an attempt, which need not exist. Its first start, end and reason are final. */
export async function updateAttempt(
  session: Session,
  job: string,
  number: number,
  { startedAtMillis, endedAtMillis, reason, logTail, samples }: Changes,
): Promise<void> {
  await session.run(update, {
    job_id: job,
    number,
    started_at: startedAtMillis ?? null,
    ended_at: endedAtMillis ?? null,
    reason: reason === undefined ? null : toStoredText(reason),
    log_tail: logTail === undefined ? null : toStoredText(logTail),
    samples: samples === undefined ? null : JSON.stringify(samples),
  });
}

const remove = statement((db, p: { job: string; number: number }) =>
  db.deleteFrom("job_attempts").where("job_id", "=", p.job).where("number", "=", p.number),
);

export async function deleteAttempt(session: Session, job: string, number: number): Promise<void> {
  await session.run(remove, { job, number });
}

const list = statement((db, p: { job: string }) =>
  db.selectFrom("job_attempts").selectAll().where("job_id", "=", p.job).orderBy("number"),
);

/** Lists the attempts at a job, the earliest first. */
export async function listAttempts(session: Session, job: string): Promise<AttemptRecord[]> {
  return (await session.all(list, { job })).map((row) => ({
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

const findSamples = statement((db, p: { job: string; number: number }) =>
  db.selectFrom("job_attempts").select("samples").where("job_id", "=", p.job).where("number", "=", p.number),
);

/** Returns the progress of an attempt over time. */
export async function listSamples(session: Session, job: string, number: number): Promise<ProgressSample[]> {
  const [row] = await session.all(findSamples, { job, number });
  return JSON.parse(row?.samples ?? "[]");
}
