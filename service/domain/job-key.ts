import { CatalogError, formatIdentifier, type Identifier, managementContracts } from "@tiltyard/protocol";
import { generateApiKey, hashApiKey } from "../auth/api-key.ts";
import { afterEndMs } from "../auth/job-key.ts";
import { isOpen, latestAttempt } from "../store/jobs.ts";
import { deleteJobKeys, putApiKey } from "../store/principals.ts";
import type { Session } from "../store/store.ts";
import { prepareAudit } from "./audit.ts";
import type { NewApiKey } from "./principals.ts";
import { requireJob } from "./require.ts";
import type { Origin } from "./transaction.ts";

/**
 * Makes the key that an attempt of a job runs with, in place of the one that the job had. The audit names its
 * principal for what the job does.
 *
 * @throws CatalogError TransactionNotFound; ConcurrentModification when the job has ended, or has another attempt.
 */
export async function createJobKey(
  session: Session,
  origin: Origin,
  identifier: Identifier,
  attempt: number,
): Promise<NewApiKey & { readonly principal: string }> {
  const job = await requireJob(session, identifier);
  const latest = latestAttempt(job.properties);
  if (!isOpen(job) || latest !== attempt)
    throw new CatalogError("ConcurrentModification", `the job is ${job.status}, and its latest attempt is ${latest}`);
  await deleteJobKeys(session, job.id, Date.now() - afterEndMs);
  const principal = `job:${formatIdentifier([...job.namespace, job.id])} for ${job.principal}`;
  const { id, key } = generateApiKey();
  await putApiKey(session, id, principal, hashApiKey(key), { id: job.id, attempt });
  const properties = { api_key_id: id, principal, attempt: String(attempt) };
  const audit = prepareAudit({
    ...origin,
    contract: managementContracts.createJobKey,
    objects: job.objects,
    properties,
  });
  await audit.record(session);
  return { id, key, principal, transaction: audit.name };
}
