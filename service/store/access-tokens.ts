import type { RecordOf } from "./schema.ts";
import type { Session } from "./store.ts";

/** Stores the hash of a token of an API key. Deletes expired tokens and the oldest tokens of the key beyond `tokensMax`. */
export async function insertAccessToken(
  { db }: Session,
  token: RecordOf<"accessTokens">,
  tokensMax: number,
): Promise<void> {
  const { apiKey } = token;
  await db.deleteFrom("accessTokens").where("expiresAtMillis", "<=", Date.now()).execute();
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
