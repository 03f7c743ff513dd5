import { statement } from "./statement.ts";
import type { Session } from "./store.ts";

const insert = statement((db, p: { hash: string; api_key: string; expires_at: number }) =>
  db.insertInto("access_tokens").values({ hash: p.hash, api_key: p.api_key, expires_at: p.expires_at }),
);

const removeExpired = statement((db, p: { now: number }) =>
  db.deleteFrom("access_tokens").where("expires_at", "<=", p.now),
);

const removeOldest = statement((db, p: { api_key: string; keep: number }) =>
  db
    .deleteFrom("access_tokens")
    .where("api_key", "=", p.api_key)
    .where(({ eb, selectFrom }) =>
      eb(
        "hash",
        "not in",
        selectFrom("access_tokens")
          .select("hash")
          .where("api_key", "=", p.api_key)
          .orderBy("expires_at", "desc")
          .limit(p.keep),
      ),
    ),
);

/** Stores the hash of a token of an API key. Deletes expired tokens and the oldest tokens of the key beyond `tokensMax`. */
export async function insertAccessToken(
  session: Session,
  token: { readonly hash: string; readonly apiKeyId: string; readonly expiresAtMillis: number },
  tokensMax: number,
): Promise<void> {
  await session.run(removeExpired, { now: Date.now() });
  await session.run(removeOldest, { api_key: token.apiKeyId, keep: tokensMax - 1 });
  await session.run(insert, { hash: token.hash, api_key: token.apiKeyId, expires_at: token.expiresAtMillis });
}

const removeOfKey = statement((db, p: { api_key: string }) =>
  db.deleteFrom("access_tokens").where("api_key", "=", p.api_key),
);

export async function deleteAccessTokens(session: Session, apiKeyId: string): Promise<void> {
  await session.run(removeOfKey, { api_key: apiKeyId });
}
