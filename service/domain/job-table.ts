import { CatalogError, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import { mayOpenerWrite } from "../auth/job-key.ts";
import { findOpenJobs, hasTable, type JobRecord } from "../store/jobs.ts";
import type { Session } from "../store/store.ts";
import { findTable, findTableById, type TableRecord } from "../store/tables.ts";
import { changed } from "./job.ts";
import { tableNotFound } from "./require.ts";

/** Returns a job as failed if its table was dropped. Another table of the same name is not its table. */
export async function failWithoutTable(session: Session, job: JobRecord): Promise<JobRecord | undefined> {
  if (await hasTable(session, job)) return undefined;
  const [name = []] = job.objects;
  const table = formatIdentifier(name);
  const isRecreated = (await findTable(session, name)) !== undefined;
  const reason = isRecreated
    ? `the table ${table} was dropped, and another table has its name now: open a new job for that one`
    : `the table ${table} was dropped`;
  return changed(job, { status: "Failed", reason });
}

/** Returns a job as failed if the principal that opened it may no longer write its table. */
export async function failWithoutRights(session: Session, job: JobRecord): Promise<JobRecord | undefined> {
  if (await mayOpenerWrite(session, job)) return undefined;
  const objects = job.objects.map((object) => formatIdentifier(object)).join(", ");
  return changed(job, { status: "Failed", reason: `${job.principal} may no longer write ${objects}` });
}

/** Returns the present name of a job's table, for another job with its parameters. @throws CatalogError TableNotFound */
export async function presentTable(
  session: Session,
  { objects: [name = []], tableId }: JobRecord,
): Promise<Identifier> {
  if (tableId === undefined) return name;
  const table = await findTableById(session, tableId);
  if (table === undefined) throw tableNotFound(name);
  return table.identifier;
}

/**
 * Requires that no job of a table is open, because jobs open their table by its name.
 *
 * @throws CatalogError ConcurrentModification
 */
export async function requireNoOpenJob(session: Session, { id, identifier }: TableRecord): Promise<void> {
  const [open] = await findOpenJobs(session, id);
  if (open === undefined) return;
  throw new CatalogError(
    "ConcurrentModification",
    `table ${formatIdentifier(identifier)} has the open job ${formatIdentifier([...open.namespace, open.id])}, which opens it by its name: wait for its end, or cancel it`,
  );
}
