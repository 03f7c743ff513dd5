import { CatalogError } from "@tiltyard/protocol";
import { findJobById, isOpen, latestAttempt } from "../store/jobs.ts";
import { type Grant, type JobAttempt, listGrantsOf } from "../store/principals.ts";
import type { Session } from "../store/store.ts";

/** Where Geneva's clients keep their records of jobs. */
const systemNamespace = ["__system"];
/** How long the key of a job is valid after the last heartbeat, which comes every few seconds. */
const leaseMs = 3_600_000;
/** How long it is valid after the job has ended, for cleaning up. */
export const afterEndMs = 60_000;

/**
 * What the key of an attempt allows: to write what its job changes and Geneva's own records, and to read what the
 * job's principal may. It is valid while the attempt is the latest one.
 *
 * @throws CatalogError Unauthenticated when it has expired.
 */
export async function grantsOfAttempt(session: Session, { id, attempt }: JobAttempt): Promise<readonly Grant[]> {
  const job = await findJobById(session, id);
  const ageMs = Date.now() - (job?.updatedAtMillis ?? 0);
  if (job === undefined || latestAttempt(job.properties) !== attempt || ageMs > (isOpen(job) ? leaseMs : afterEndMs))
    throw new CatalogError("Unauthenticated", "the key of this attempt has expired: its job goes on without it");
  const readable = (await listGrantsOf(session, job.principal)).filter(({ role }) => role !== "runner");
  const writable = [...job.objects, [...job.namespace, job.id], systemNamespace];
  return [
    ...readable.map(({ namespace }) => ({ namespace, role: "reader" as const })),
    ...writable.map((namespace) => ({ namespace, role: "writer" as const })),
  ];
}
