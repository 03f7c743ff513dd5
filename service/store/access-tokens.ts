import type { Session } from "./store.ts";

/** Stores the hash of a token of an API key. Deletes expired tokens and the oldest tokens of the key beyond `tokensMax`. */
export async function insertAccessToken(
  { db }: Session,
  token: { readonly hash: string; readonly apiKeyId: string; readonly expiresAtMillis: number },
  tokensMax: number,
): Promise<void> {
  const { hash, apiKeyId: api_key, expiresAtMillis: expires_at } = token;
  await db.deleteFrom("access_tokens").where("expires_at", "<=", Date.now()).execute();
  const newest = db
    .selectFrom("access_tokens")
    .select("hash")
    .where("api_key", "=", api_key)
    .orderBy("expires_at", "desc")
    .limit(tokensMax - 1);
  await db.deleteFrom("access_tokens").where("api_key", "=", api_key).where("hash", "not in", newest).execute();
  await db.insertInto("access_tokens").values({ hash, api_key, expires_at }).execute();
}

export async function deleteAccessTokens({ db }: Session, apiKeyId: string): Promise<void> {
  await db.deleteFrom("access_tokens").where("api_key", "=", apiKeyId).execute();
}
