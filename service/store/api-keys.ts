import { openStatuses } from "@tiltyard/protocol";
import { sql } from "kysely";
import { anyPrincipal, everything, type Page } from "./page.ts";
import type { Schema } from "./schema.ts";
import { pick, statement } from "./statement.ts";
import type { Session } from "./store.ts";

/** The placeholder for any key. No key has an empty id. */
const anyKey = "";

export interface ApiKeyRecord {
  readonly id: string;
  readonly principal: string;
  readonly createdAtMillis: number;
}

/** The attempt of a job that owns a key. */
export interface JobAttempt {
  readonly id: string;
  readonly attempt: number;
  /** The principal that created the key; undefined for a key of an earlier release. */
  readonly creator: string | undefined;
}

/** The owner of an API key. */
export interface KeyOwner {
  readonly id: string;
  readonly principal: string;
  /** The attempt that owns the key; undefined for all other keys. */
  readonly of: JobAttempt | undefined;
}

const upsertKey = statement((db, p: Schema["api_keys"]) =>
  db
    .insertInto("api_keys")
    .values(pick(p, "id", "principal", "hash", "created_at", "job", "attempt", "creator"))
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet((eb) => ({
        principal: eb.ref("excluded.principal"),
        hash: eb.ref("excluded.hash"),
      })),
    ),
);

/**
 * Stores the hash of an API key. Replaces an existing key with this id.
 *
 * @param of The attempt that owns the key.
 */
export async function putApiKey(
  session: Session,
  id: string,
  principal: string,
  hash: string,
  of?: JobAttempt,
): Promise<void> {
  const { id: job = null, attempt = null, creator = null } = of ?? {};
  await session.run(upsertKey, { id, principal, hash, created_at: Date.now(), job, attempt, creator });
}

type OwnerRow = Pick<Schema["api_keys"], "id" | "principal" | "job" | "attempt" | "creator">;

const findKey = statement((db, p: { hash: string }) =>
  db.selectFrom("api_keys").select(["id", "principal", "job", "attempt", "creator"]).where("hash", "=", p.hash),
);

/** Finds the owner of the API key with this hash. */
export async function findApiKey(session: Session, hash: string): Promise<KeyOwner | undefined> {
  return toOwner(await session.first(findKey, { hash }));
}

const findKeyOfToken = statement((db, p: { hash: string; now: number }) =>
  db
    .selectFrom("access_tokens")
    .innerJoin("api_keys", "api_keys.id", "access_tokens.api_key")
    .select(["api_keys.id", "principal", "job", "attempt", "creator"])
    .where("access_tokens.hash", "=", p.hash)
    .where("expires_at", ">", p.now)
    .where("api_keys.hash", "not like", sql.lit(revokedHash("%"))),
);

/** Finds the owner of the API key of an unexpired token with this hash. */
export async function findApiKeyOfToken(session: Session, hash: string): Promise<KeyOwner | undefined> {
  return toOwner(await session.first(findKeyOfToken, { hash, now: Date.now() }));
}

function toOwner(row: OwnerRow | undefined): KeyOwner | undefined {
  if (row === undefined) return undefined;
  const { id, principal, job, attempt, creator } = row;
  const of = job === null ? undefined : { id: job, attempt: Number(attempt), creator: creator ?? undefined };
  return { id, principal, of };
}

const removeJobKeys = statement((db, p: { job: string; endedBefore: number }) =>
  db.deleteFrom("api_keys").where(({ eb, and, or, not, exists, selectFrom }) =>
    or([
      eb("job", "=", p.job),
      and([
        eb("job", "is not", null),
        not(
          exists(
            selectFrom("jobs")
              .select("jobs.id")
              .whereRef("jobs.id", "=", "api_keys.job")
              .where((job) =>
                job.or([job("jobs.status", "in", openStatuses), job("jobs.updated_at", ">=", p.endedBefore)]),
              ),
          ),
        ),
      ]),
    ]),
  ),
);

/** Deletes the keys of a job, and the keys of jobs that ended before a time. */
export async function deleteJobKeys(session: Session, job: string, endedBefore: number): Promise<void> {
  await session.run(removeJobKeys, { job, endedBefore });
}

const findHash = statement((db, p: { id: string }) => db.selectFrom("api_keys").select("hash").where("id", "=", p.id));

/** Returns the stored hash of the key with this id, even if the key is revoked. */
export async function findApiKeyHash(session: Session, id: string): Promise<string | undefined> {
  return (await session.first(findHash, { id }))?.hash;
}

/**
 * Returns the hash that replaces the one of a revoked key from the configuration, so that the next start does not
 * install the key again.
 */
export function revokedHash(hash: string): string {
  return `revoked:${hash}`;
}

/** Selects the keys that are not revoked. */
export const isLive = sql<boolean>`hash not like ${sql.lit(revokedHash("%"))}`;

const hasKey = statement((db, p: { principal: string; id: string }) =>
  db
    .selectFrom("api_keys")
    .select("id")
    .where("principal", "=", p.principal)
    .where(({ eb, val }) => eb.or([eb(val(p.id), "=", sql.lit(anyKey)), eb("id", "=", p.id)]))
    .where(isLive)
    .limit(1),
);

/** Reports whether a principal has the API key with this id, or any key. */
export async function hasApiKey(session: Session, principal: string, id: string = anyKey): Promise<boolean> {
  return (await session.first(hasKey, { principal, id })) !== undefined;
}

const revoke = statement((db, p: { id: string; prefix: string }) =>
  db
    .updateTable("api_keys")
    .set(({ eb }) => ({ hash: eb(eb.val(p.prefix), "||", eb.ref("hash")) }))
    .where("id", "=", p.id)
    .where(isLive)
    .returning("principal"),
);

/** Revokes a key but keeps its row. @returns The owner of the key; undefined if no valid key has this id. */
export async function revokeApiKeyInPlace(session: Session, id: string): Promise<string | undefined> {
  return (await session.first(revoke, { id, prefix: revokedHash("") }))?.principal;
}

const removeKey = statement((db, p: { id: string }) =>
  db.deleteFrom("api_keys").where("id", "=", p.id).where(isLive).returning("principal"),
);

/** Deletes a key. @returns The owner of the key; undefined if no valid key has this id. */
export async function deleteApiKey(session: Session, id: string): Promise<string | undefined> {
  return (await session.first(removeKey, { id }))?.principal;
}

const listKeys = statement((db, p: { principal: string; created_at: number; id: string; limit: number }) =>
  db
    .selectFrom("api_keys")
    .select(["id", "principal", "created_at"])
    .where(isLive)
    .where(({ eb, val }) =>
      eb.or([eb(val(p.principal), "=", sql.lit(anyPrincipal)), eb("principal", "=", p.principal)]),
    )
    .where(({ eb, refTuple, tuple }) => eb(refTuple("created_at", "id"), ">", tuple(p.created_at, p.id)))
    .orderBy("created_at")
    .orderBy("id")
    .limit(p.limit),
);

/** Lists the keys of a principal or of all principals, the oldest first. */
export async function listApiKeys(
  session: Session,
  principal: string = anyPrincipal,
  { after, limit }: Page<Pick<ApiKeyRecord, "createdAtMillis" | "id">> = everything,
): Promise<ApiKeyRecord[]> {
  const rows = await session.all(listKeys, {
    principal,
    created_at: after?.createdAtMillis ?? -1,
    id: after?.id ?? "",
    limit,
  });
  return rows.map((row) => ({ id: row.id, principal: row.principal, createdAtMillis: row.created_at }));
}
