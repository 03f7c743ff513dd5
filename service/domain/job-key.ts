import { CatalogError, type Identifier, isOpen, managementContracts } from "@tiltyard/protocol";
import { generateApiKey, hashApiKey } from "../auth/api-key.ts";
import { afterEndMs, grantsOfAttempt } from "../auth/job-key.ts";
import { deleteJobKeys, type JobAttempt, putApiKey } from "../store/api-keys.ts";
import type { Session } from "../store/store.ts";
import { recordAudit } from "./audit.ts";
import { principalOfJob } from "./job.ts";
import type { NewApiKey } from "./principals.ts";
import { requireJob } from "./require.ts";
import type { Origin } from "./transaction.ts";

/**
 * Creates the key of an attempt and deletes the earlier keys of the job. The audit records the principal of the key for
 * all changes of the job.
 *
 * @throws CatalogError TransactionNotFound; ConcurrentModification if the job has ended or has another attempt;
 * PermissionDenied if the opener of the job or the caller lacks the rights of the job.
 */
export async function createJobKey(
  session: Session,
  origin: Origin,
  identifier: Identifier,
  attempt: number,
  isolatedNamespaces: readonly string[],
): Promise<NewApiKey & { readonly principal: string }> {
  const job = await requireJob(session, identifier);
  if (!isOpen(job) || job.attempt !== attempt)
    throw new CatalogError(
      "ConcurrentModification",
      `the job is ${job.status}, and its latest attempt is ${job.attempt}`,
    );
  await deleteJobKeys(session, job.id, Date.now() - afterEndMs);
  const principal = principalOfJob(job);
  const { id, key } = generateApiKey();
  const of = { id: job.id, attempt, creator: origin.caller.principal.name };
  await putApiKey(session, id, principal, hashApiKey(key), of);
  // A key without rights would only fail later, within the job.
  await requireValid(session, of, isolatedNamespaces);
  const properties = { api_key_id: id, principal, attempt: String(attempt) };
  const change = { ...origin, contract: managementContracts.createJobKey, objects: job.objects, properties };
  return { id, key, principal, transaction: await recordAudit(session, change) };
}

async function requireValid(
  session: Session,
  attempt: JobAttempt,
  isolatedNamespaces: readonly string[],
): Promise<void> {
  try {
    await grantsOfAttempt(session, attempt, isolatedNamespaces);
  } catch (error) {
    if (!(error instanceof CatalogError) || error.kind !== "Unauthenticated") throw error;
    throw new CatalogError("PermissionDenied", error.message, { cause: error });
  }
}
