import { openStatuses } from "@tiltyard/protocol";
import { sql } from "kysely";
import { follows } from "./path.ts";
import { defineQuery } from "./queries.ts";
import type { RecordOf } from "./schema.ts";
import type { Page, Session } from "./store.ts";

export type ApiKeyRecord = Pick<RecordOf<"apiKeys">, "id" | "principal" | "createdAtMillis">;

export interface JobAttempt {
  readonly id: string;
  readonly attempt: number;
  readonly creator: string;
}

/** The owner of a key or of a token, with the attempt at a job that has the key. Only tokens have an expiry. */
export type KeyOwner = Omit<RecordOf<"apiKeys">, "hash" | "createdAtMillis"> &
  Partial<Pick<RecordOf<"accessTokens">, "expiresAtMillis">>;

/** Stores the hash of an API key. Replaces an existing key with this id. @param of The attempt that owns the key. */
export async function putApiKey({ db }: Session, id: string, principal: string, hash: string, of?: JobAttempt) {
  const { id: job, attempt, creator } = of ?? {};
  await db
    .insertInto("apiKeys")
    .values({ id, principal, hash, createdAtMillis: Date.now(), job, attempt, creator })
    .onConflict((conflict) => conflict.column("id").doUpdateSet({ principal, hash }))
    .execute();
}

const keysWith = defineQuery((db, { hash }: { readonly hash: string }) =>
  db.selectFrom("apiKeys").select(["id", "principal", "job", "attempt", "creator"]).where("hash", "=", hash),
);

export async function findApiKey(session: Session, hash: string): Promise<KeyOwner | undefined> {
  const [owner] = await keysWith(session, { hash });
  return owner;
}

const keysOfTokens = defineQuery((db, { hash }: { readonly hash: string }) =>
  db
    .selectFrom("accessTokens")
    .innerJoin("apiKeys", "apiKeys.id", "accessTokens.apiKey")
    .select(["apiKeys.id", "principal", "job", "attempt", "creator", "expiresAtMillis"])
    .where("accessTokens.hash", "=", hash),
);

/** Finds the owner of the API key of a token with this hash. The token may have expired. */
export async function findApiKeyOfToken(session: Session, hash: string): Promise<KeyOwner | undefined> {
  const [owner] = await keysOfTokens(session, { hash });
  return owner;
}

export async function deleteJobKeys({ db }: Session, job: string, endedBefore: number): Promise<void> {
  await db
    .deleteFrom("apiKeys")
    .where(({ eb, and, or, not, exists, selectFrom }) => {
      const recent = selectFrom("jobs")
        .select("jobs.id")
        .whereRef("jobs.id", "=", "apiKeys.job")
        .where((each) => each.or([each("status", "in", openStatuses), each("updatedAtMillis", ">=", endedBefore)]));
      return or([eb("job", "=", job), and([eb("job", "is not", null), not(exists(recent))])]);
    })
    .execute();
}

/** Returns the stored hash of a revoked key of the configuration, so that no later start installs it. */
export function revokedHash(hash: string): string {
  return `revoked:${hash}`;
}

export const isLive = sql<boolean>`hash not like ${revokedHash("%")}`;

/** Reports whether a principal has the API key with this id, or any key if `id` is undefined. */
export async function hasApiKey({ db }: Session, principal: string, id?: string): Promise<boolean> {
  let keys = db.selectFrom("apiKeys").select("id").where("principal", "=", principal).where(isLive);
  if (id !== undefined) keys = keys.where("id", "=", id);
  return (await keys.limit(1).executeTakeFirst()) !== undefined;
}

/** Revokes a key but keeps its hash. @returns The owner of the key; undefined if no valid key has this id. */
export async function revokeApiKeyForever(session: Session, id: string): Promise<string | undefined> {
  await deleteAccessTokens(session, id);
  const revoked = sql<string>`${revokedHash("")} || hash`;
  const row = await session.db
    .updateTable("apiKeys")
    // The id is free for the next key.
    .set({ id: revoked, hash: revoked })
    .where("id", "=", id)
    .returning("principal")
    .executeTakeFirst();
  return row?.principal;
}

/** Deletes a key. @returns The owner of the key; undefined if no valid key has this id. */
export async function deleteApiKey({ db }: Session, id: string): Promise<string | undefined> {
  const row = await db
    .deleteFrom("apiKeys")
    .where("id", "=", id)
    .where(isLive)
    .returning("principal")
    .executeTakeFirst();
  return row?.principal;
}

export async function listApiKeys(
  { db }: Session,
  principal: string | undefined,
  { after, limit }: Page<Pick<ApiKeyRecord, "createdAtMillis" | "id">>,
): Promise<ApiKeyRecord[]> {
  const live = db.selectFrom("apiKeys").select(["id", "principal", "createdAtMillis"]).where(isLive);
  let keys = live.where(follows(["createdAtMillis", "id"], after));
  if (principal !== undefined) keys = keys.where("principal", "=", principal);
  return keys.orderBy("createdAtMillis").orderBy("id").limit(limit).execute();
}

/** Stores the hash of a token of an API key. Deletes expired tokens and the oldest tokens of the key beyond `tokensMax`. */
export async function insertAccessToken({ db, time }: Session, token: RecordOf<"accessTokens">, tokensMax: number) {
  const { apiKey } = token;
  await db.deleteFrom("accessTokens").where("expiresAtMillis", "<=", time()).execute();
  const newest = db
    .selectFrom("accessTokens")
    .select("hash")
    .where("apiKey", "=", apiKey)
    .orderBy("expiresAtMillis", "desc")
    .limit(tokensMax - 1);
  await db.deleteFrom("accessTokens").where("apiKey", "=", apiKey).where("hash", "not in", newest).execute();
  await db.insertInto("accessTokens").values(token).execute();
}

export async function deleteAccessTokens({ db }: Session, apiKeyId: string): Promise<void> {
  await db.deleteFrom("accessTokens").where("apiKey", "=", apiKeyId).execute();
}
