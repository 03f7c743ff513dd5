import { CatalogError, formatIdentifier, isOpen, remoteContracts } from "@tiltyard/protocol";
import type { Origin } from "../domain/transaction.ts";
import { newJob, type OpenJobMaxima, requireRoom } from "../jobs/job.ts";
import { type FunctionRecord, setJob } from "../store/functions.ts";
import { findJobById, insertJob, type JobRecord } from "../store/jobs.ts";
import type { Session } from "../store/store.ts";

/** The maximum running time of all attempts at a job together. */
const timeoutSeconds = 3_600;

/**
 * Opens the job that installs the packages of a version unless it is open already. LanceDB calls this step `bake`. The
 * job has no table, and its key reaches none.
 *
 * @returns The name of the job.
 * @throws CatalogError TooManyJobs
 */
export async function openBake(
  session: Session,
  bound: FunctionRecord,
  caller: Origin,
  openJobMaxima: OpenJobMaxima,
): Promise<string> {
  const { python_version, packages = [] } = bound.definition.runtime;
  const { names, opened } = newJob({
    operation: remoteContracts.createFunction.operationId,
    caller,
    objects: [[...bound.namespace, bound.name]],
    parameters: {
      version: bound.version,
      python_version,
      packages: [...packages],
      timeout_seconds: timeoutSeconds,
    },
  });
  const present = await findBake(session, bound);
  if (present !== undefined && isOpen(present)) return names.nameOf(present.id);
  await requireRoom(session, opened, openJobMaxima);
  await insertJob(session, opened);
  await setJob(session, bound.id, names.id);
  return names.name;
}

/** Requires that columns may use a version. @throws CatalogError InvalidInput */
export async function requireReady(session: Session, bound: FunctionRecord): Promise<void> {
  if (bound.isReady) return;
  const name = formatIdentifier([...bound.namespace, bound.name]);
  const job = await findBake(session, bound);
  const advice =
    job !== undefined && isOpen(job)
      ? `: wait for the job ${formatIdentifier([...job.namespace, job.id])}, which is ${job.status}`
      : `. Register the function again. ${job?.reason ?? ""}`.trim();
  throw new CatalogError(
    "InvalidInput",
    `function: the packages of version ${bound.version} of ${name} are not installed${advice}`,
  );
}

/** Returns the latest job that installs the packages of a version, unless it is deleted already. */
async function findBake(session: Session, { jobId }: FunctionRecord): Promise<JobRecord | undefined> {
  return jobId === undefined ? undefined : findJobById(session, jobId);
}
