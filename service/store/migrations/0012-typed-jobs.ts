import { type Kysely, sql } from "kysely";
import type { Dialect } from "../dialect.ts";
import { toPath } from "../path.ts";

/** The former properties of a job that attempts set. All others are parameters. */
const noted = /^(?:attempt|progress|result)\.|^(?:ray_address|ray_submission_id|ray_job|started_at|reason|log_tail)$/;
/** The operation of jobs that their openers run, whose only parameter is a column. */
const ownJobs = "OpenJob";

interface OldJob {
  readonly id: string;
  readonly operation: string;
  readonly objects: string;
  readonly status: string;
  readonly properties: string;
  readonly updated_at: number | string;
}
type Texts = Readonly<Record<string, string>>;

/**
 * Adds columns for the parameters and the state of a job, which were properties, and a table of attempts. A replica of
 * the previous release leaves the parameters of a new job null and has them in the properties.
 */
export async function up(db: Kysely<unknown>, { text, keptInKeyOrder }: Dialect): Promise<void> {
  await db.schema.alterTable("jobs").addColumn("table_id", "integer").execute();
  await db.schema.alterTable("jobs").addColumn("parameters", text).execute();
  await db.schema
    .alterTable("jobs")
    .addColumn("attempt", "integer", (column) => column.notNull().defaultTo(0))
    .execute();
  for (const name of ["claim", "reason"]) await db.schema.alterTable("jobs").addColumn(name, text).execute();
  for (const name of ["started_at", "heartbeat_at", "ended_at"])
    await db.schema.alterTable("jobs").addColumn(name, "bigint").execute();
  for (const name of ["progress", "result", "platform"])
    await db.schema
      .alterTable("jobs")
      .addColumn(name, text, (column) => column.notNull().defaultTo("{}"))
      .execute();
  await db.schema
    .createTable("job_attempts")
    .addColumn("job_id", text, (column) => column.notNull().references("jobs.id").onDelete("cascade"))
    .addColumn("number", "integer", (column) => column.notNull())
    .addColumn("claimed_at", "bigint", (column) => column.notNull())
    .addColumn("started_at", "bigint")
    .addColumn("ended_at", "bigint")
    .addColumn("reason", text)
    .addColumn("log_tail", text, (column) => column.notNull().defaultTo(""))
    .addColumn("platform", text, (column) => column.notNull())
    .addPrimaryKeyConstraint("job_attempts_key", ["job_id", "number"])
    .modifyEnd(keptInKeyOrder)
    .execute();
  const { rows } = await sql<OldJob>`select id, operation, objects, status, properties, updated_at from jobs`.execute(
    db,
  );
  for (const job of rows) await migrateJob(db, job);
}

async function migrateJob(db: Kysely<unknown>, job: OldJob): Promise<void> {
  const old: Texts = JSON.parse(job.properties);
  const [table = []]: string[][] = JSON.parse(job.objects);
  const isParameter = (name: string) => (job.operation === ownJobs ? name === "column" : !noted.test(name));
  const isFree = (name: string) => job.operation === ownJobs && name !== "column" && name !== "reason";
  const attempt = Math.max(0, ...Object.keys(old).map((name) => Number(/^attempt\.(\d{1,8})$/.exec(name)?.[1] ?? 0)));
  const updatedAt = Number(job.updated_at);
  const endedAt = job.status === "Queued" || job.status === "Running" ? null : updatedAt;
  const startedAt = millisOf(old.started_at);
  const heartbeatAt = millisOf(old[`attempt.${attempt}`]) ?? (attempt > 0 ? updatedAt : null);
  const platform = JSON.stringify(only(old, (name) => /^ray_(?:address|submission_id|job)$/.test(name)));
  // An attempt that runs cannot continue, because its requests are those of the previous release.
  const claim = startedAt === null ? null : "of the previous release";
  await sql`update jobs set
      parameters = ${JSON.stringify(only(old, isParameter))},
      properties = ${JSON.stringify(only(old, isFree))},
      table_id = (select id from tables where namespace = ${toPath(table.slice(0, -1))}
        and name = ${table.at(-1) ?? ""}),
      attempt = ${attempt}, claim = ${claim}, started_at = ${startedAt}, heartbeat_at = ${heartbeatAt},
      ended_at = ${endedAt}, reason = ${old.reason ?? null}, platform = ${platform},
      progress = ${countsOf(old, "progress.")}, result = ${countsOf(old, "result.")}
    where id = ${job.id}`.execute(db);
  if (attempt === 0) return;
  await sql`insert into job_attempts
      (job_id, number, claimed_at, started_at, ended_at, reason, log_tail, platform)
    values (${job.id}, ${attempt}, ${startedAt ?? updatedAt}, ${startedAt}, ${endedAt}, ${endedAt === null ? null : (old.reason ?? null)},
      ${old.log_tail ?? ""}, ${platform})`.execute(db);
}

function only(texts: Texts, isMeant: (name: string) => boolean): Texts {
  return Object.fromEntries(Object.entries(texts).filter(([name]) => isMeant(name)));
}

/** Returns the valid counts with a prefix as JSON. Clients could write any text to these properties. */
function countsOf(texts: Texts, prefix: string): string {
  const counts = Object.entries(texts)
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, value]) => [name.slice(prefix.length), Number(value)] as const)
    .filter(([, value]) => Number.isSafeInteger(value) && value >= 0);
  return JSON.stringify(Object.fromEntries(counts));
}

function millisOf(time: string | undefined): number | null {
  const millis = Date.parse(time ?? "");
  return Number.isNaN(millis) ? null : millis;
}
