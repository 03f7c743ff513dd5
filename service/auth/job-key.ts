import {
  CatalogError,
  catalogPrincipal,
  contracts,
  type Identifier,
  isOpen,
  isSystemTable,
  isWithin,
  systemNamespaceOf,
  tokenPrefix,
} from "@tiltyard/protocol";
import { hasApiKey, type JobAttempt } from "../store/api-keys.ts";
import { type Grant, type JobGrant, listGrantsOf } from "../store/grants.ts";
import { findJobById, hasObject, type JobRecord } from "../store/jobs.ts";
import type { Session } from "../store/store.ts";
import { findView } from "../store/views.ts";
import { isAllowed } from "./authorize.ts";

/** The time that a key is valid after the last heartbeat. Attempts send one every few seconds. */
const leaseMs = 3_600_000;
/** The time that a key is valid after the end or the pause of its job, for a commit that has begun and for cleanup. */
export const afterEndMs = 60_000;

/**
 * Returns the rights of the key of an attempt: to write the objects of its job, to read the source of its view, and to
 * commit Geneva's records. They never exceed the current rights of the opener, of the author of the parameters, or the
 * namespaces in which the creator of the key is a runner; the source also requires those of the view's definer. They
 * include no other tables of the opener, because every writer of the job's table can replace
 * the functions that the job executes. The registration of a Function only reports.
 *
 * @param isolatedNamespaces The namespaces that contain their own Geneva records.
 * @throws CatalogError Unauthenticated if the attempt has ended, or if the opener or the creator has lost the rights.
 */
export async function grantsOfAttempt(
  session: Session,
  attempt: JobAttempt,
  isolatedNamespaces: readonly string[],
): Promise<readonly JobGrant[]> {
  const job = await findJobById(session, attempt.id);
  if (job === undefined || job.attempt !== attempt.attempt || session.time() > validUntil(job))
    throw new CatalogError("Unauthenticated", "the key of this attempt has expired: its job continues without it");
  const namespaces = await namespacesOfRunner(session, attempt.creator);
  const isRunnable = (object: Identifier) => namespaces.some((namespace) => isWithin(object, namespace));
  if ((await formerWriter(session, job)) !== undefined || !subjectsOf(job).every(isRunnable))
    throw new CatalogError(
      "Unauthenticated",
      "the key of this attempt is revoked: the opener of its job, or the creator of the key, lost the rights",
    );
  // The key creates nothing under these names, which would exceed the rights of an opener that may only write the table.
  const own = { namespace: [...job.namespace, job.id], role: "writer", kind: "job" } as const;
  if (job.tableId === undefined) return [own];
  // The key writes no other table that was created under the name of its own one.
  const writable = (await hasObject(session, job)) ? job.objects : [];
  const records = systemNamespaceOf([...job.namespace, job.id], isolatedNamespaces);
  const readable = (await readableSources(session, job)).filter(isRunnable);
  return [
    ...readable.map((namespace) => ({ namespace, role: "reader", kind: "table" }) as const),
    ...writable.map((namespace) => ({ namespace, role: "writer", kind: "table" }) as const),
    own,
    { namespace: records, role: "committer", job: [...job.namespace, job.id] },
  ];
}

/** Returns the objects that require the rights of a job: its tables, or the namespace of the Function that it registers. */
function subjectsOf({ tableId, objects, namespace }: JobRecord): readonly Identifier[] {
  return tableId === undefined ? [namespace] : objects;
}

/** Returns the opener of a job, or the author of its parameters, if it may no longer write the subjects of the job. */
export async function formerWriter(session: Session, job: JobRecord): Promise<string | undefined> {
  for (const [name, grants] of await ownersOf(session, job))
    if (!subjectsOf(job).every((object) => isAllowed({ grants }, { role: "writer", object }))) return name;
  return undefined;
}

/** Returns the source of the view of a refresh if the definer, the opener and the author may all read it. */
async function readableSources(session: Session, job: JobRecord): Promise<readonly Identifier[]> {
  const { operation, tableId } = job;
  const view =
    tableId !== undefined && operation === contracts.refreshMaterializedView.operationId
      ? await findView(session, tableId)
      : undefined;
  if (view?.source === undefined) return [];
  const access = { role: "reader", object: view.source } as const;
  const owners = [
    ...(await ownersOf(session, job)),
    ["", await grantsOf(session, view.definer, [view.source])] as const,
  ];
  return owners.every(([, grants]) => isAllowed({ grants }, access)) ? [view.source] : [];
}

/** Returns the right to use a secret in a Function, which can return the value. */
export function accessToSecret(secret: Identifier) {
  return { role: "writer", object: secret.slice(0, -1) } as const;
}

/** Reports whether the definer of a column, or else the opener of a job and the author of its parameters, may use a secret. */
export async function mayUseSecret(
  session: Session,
  job: JobRecord,
  definer: string,
  secret: Identifier,
): Promise<boolean> {
  const access = accessToSecret(secret);
  if (isAllowed({ grants: await grantsOf(session, definer, [access.object]) }, access)) return true;
  return (await ownersOf(session, job)).every(([, grants]) => isAllowed({ grants }, access));
}

async function ownersOf(
  session: Session,
  { principal, apiKey, author, objects }: JobRecord,
): Promise<readonly (readonly [name: string, grants: readonly Grant[]])[]> {
  const opener = [principal, await grantsOf(session, principal, objects, apiKey)] as const;
  return author === undefined ? [opener] : [opener, [author, await grantsOf(session, author, objects)]];
}

function validUntil(job: JobRecord): number {
  const stoppedAtMillis = isOpen(job) ? job.pausedAtMillis : job.endedAtMillis;
  return stoppedAtMillis === undefined ? (job.heartbeatAtMillis ?? 0) + leaseMs : stoppedAtMillis + afterEndMs;
}

/** Returns the current roles of a principal; none if its keys, or the given one, were revoked. */
export async function grantsOf(
  session: Session,
  principal: string,
  objects: readonly Identifier[],
  apiKey?: string,
): Promise<readonly Grant[]> {
  // The catalog itself only writes Geneva's records.
  if (principal === catalogPrincipal && objects.every(isSystemTable))
    return objects.map((namespace) => ({ namespace, role: "writer" }));
  const isTokens = principal.startsWith(tokenPrefix);
  return isTokens || (await hasApiKey(session, principal, apiKey)) ? listGrantsOf(session, principal) : [];
}

/** Returns the namespaces in which the creator of a key may run jobs. */
async function namespacesOfRunner(session: Session, creator: string): Promise<readonly Identifier[]> {
  const grants = await listGrantsOf(session, creator);
  const isRunner = (grant: Grant) => isAllowed({ grants: [grant] }, { role: "runner", object: "anywhere" });
  return grants.filter(isRunner).map(({ namespace }) => namespace);
}
