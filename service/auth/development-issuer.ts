import { randomBytes } from "node:crypto";
import { CatalogError } from "@tiltyard/protocol";
import { insertAccessToken } from "../store/api-keys.ts";
import type { Store } from "../store/store.ts";
import { hashApiKey, tokenLifetimeSeconds } from "./api-key.ts";
import type { Principal } from "./authenticator.ts";

/** The maximum number of tokens of a key. A caller that requests a token for every request must not fill the database. */
const tokensOfKeyMax = 1_000;

/**
 * Issues a token for a principal that was authenticated by an API key, so that clients can try the OAuth flow without an
 * issuer. The token is random and proves nothing without its row in the database, which is deleted after an hour or
 * together with its key.
 */
export type DevelopmentIssuer = (principal: Principal) => Promise<string>;

export function createDevelopmentIssuer(store: Store): DevelopmentIssuer {
  return async ({ apiKeyId }) => {
    if (apiKeyId === undefined) throw new CatalogError("Unauthenticated", "tokens are issued for API keys");
    const token = `tiltyard_token_${randomBytes(32).toString("base64url")}`;
    await store.write((session) => {
      const expiresAtMillis = session.time() + tokenLifetimeSeconds * 1_000;
      return insertAccessToken(session, { hash: hashApiKey(token), apiKey: apiKeyId, expiresAtMillis }, tokensOfKeyMax);
    });
    return token;
  };
}
