import {
  CatalogError,
  catalogPrincipal,
  type Identifier,
  isOpen,
  isSystemTable,
  isWithin,
  sourceOfRefresh,
  systemNamespaceOf,
  tokenPrefix,
} from "@tiltyard/protocol";
import { hasApiKey, type JobAttempt } from "../store/api-keys.ts";
import { type Grant, type JobGrant, listGrantsOf } from "../store/grants.ts";
import { findJobById, hasTable, type JobRecord } from "../store/jobs.ts";
import type { Session } from "../store/store.ts";
import { isAllowed } from "./authorize.ts";

/** The time that a key is valid after the last heartbeat. Attempts send one every few seconds. */
const leaseMs = 3_600_000;
/** The time that a key is valid after the end of its job, for cleanup. */
export const afterEndMs = 60_000;

/**
 * Returns the rights of the key of an attempt: to write the objects of its job, to read the source of its view, and to
 * commit Geneva's records. They never exceed the current rights of the opener or the namespaces in which the creator of
 * the key is a runner. They include no other tables of the opener, because every writer of the job's table can replace
 * the functions that the job executes.
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
  if (job === undefined || job.attempt !== attempt.attempt || Date.now() > validUntil(job))
    throw new CatalogError("Unauthenticated", "the key of this attempt has expired: its job continues without it");
  const opener = await grantsOfOpener(session, job);
  const places = await placesOfRunner(session, attempt.creator);
  const isInPlace = (object: Identifier) => places.some((place) => isWithin(object, place));
  if (!mayWrite(opener, job) || !job.objects.every(isInPlace))
    throw new CatalogError(
      "Unauthenticated",
      "the key of this attempt is revoked: the opener of its job, or the creator of the key, lost the rights",
    );
  // The key writes no other table that was created under the name of its own one.
  const writable = (await hasTable(session, job)) ? job.objects : [];
  const records = systemNamespaceOf([...job.namespace, job.id], isolatedNamespaces);
  const source = sourceOfRefresh(job.parameters);
  const mayRead = (object: Identifier) =>
    isAllowed({ grants: opener }, { role: "reader", object }) && isInPlace(object);
  const readable = source !== undefined && mayRead(source) ? [source] : [];
  return [
    ...readable.map((namespace) => ({ namespace, role: "reader" }) as const),
    ...[...writable, [...job.namespace, job.id]].map((namespace) => ({ namespace, role: "writer" }) as const),
    { namespace: records, role: "committer", job: [...job.namespace, job.id] },
  ];
}

/** Reports whether the principal that opened a job may still write its objects. */
export async function mayOpenerWrite(session: Session, job: JobRecord): Promise<boolean> {
  return mayWrite(await grantsOfOpener(session, job), job);
}

function mayWrite(grants: readonly Grant[], { objects }: JobRecord): boolean {
  return objects.every((object) => isAllowed({ grants }, { role: "writer", object }));
}

function validUntil(job: JobRecord): number {
  return isOpen(job) ? (job.heartbeatAtMillis ?? 0) + leaseMs : (job.endedAtMillis ?? 0) + afterEndMs;
}

/**
 * Returns the roles of the catalog itself, which looks after Geneva's records and no other tables; undefined for other
 * principals and objects.
 */
export function grantsOfCatalog(principal: string, objects: readonly Identifier[]): readonly Grant[] | undefined {
  if (principal !== catalogPrincipal || !objects.every(isSystemTable)) return undefined;
  return objects.map((namespace) => ({ namespace, role: "writer" }) as const);
}

/** Returns the current roles of the principal that opened a job; none if its API key was revoked. */
async function grantsOfOpener(session: Session, { principal, apiKey, objects }: JobRecord): Promise<readonly Grant[]> {
  const ofCatalog = grantsOfCatalog(principal, objects);
  if (ofCatalog !== undefined) return ofCatalog;
  const isTokens = principal.startsWith(tokenPrefix);
  return isTokens || (await hasApiKey(session, principal, apiKey)) ? listGrantsOf(session, principal) : [];
}

/** Returns the namespaces in which the creator of a key may run jobs. */
async function placesOfRunner(session: Session, creator: string | undefined): Promise<readonly Identifier[]> {
  if (creator === undefined) return [];
  const grants = await listGrantsOf(session, creator);
  const isRunner = (grant: Grant) => isAllowed({ grants: [grant] }, { role: "runner", object: "anywhere" });
  return grants.filter(isRunner).map(({ namespace }) => namespace);
}
