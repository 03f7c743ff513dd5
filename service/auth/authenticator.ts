import { CatalogError } from "@tiltyard/protocol";
import { findApiKey, findApiKeyOfToken, type JobAttempt } from "../store/api-keys.ts";
import { type JobGrant, listGrantsOf } from "../store/grants.ts";
import type { Store } from "../store/store.ts";
import { ApiKeySecret, hashApiKey, isExpired } from "./api-key.ts";
import { grantsOfAttempt } from "./job-key.ts";
import type { TokenVerifier } from "./token-verifier.ts";

export type Credential =
  | { readonly kind: "bearer"; readonly token: string }
  | { readonly kind: "api-key"; readonly key: string };

export interface Principal {
  /** The owner of an API key, `oidc:` and the subject of a token, or the name of a job. No two kinds share a name. */
  readonly name: string;
  readonly grants: readonly JobGrant[];
  /** The API key that authenticated the principal, directly or through a token of the catalog. */
  readonly apiKeyId?: string;
  readonly attempt?: JobAttempt;
}

/** @throws CatalogError Unauthenticated; ServiceUnavailable if the keys of the issuer cannot be fetched. */
export type Authenticator = (credential: Credential | undefined) => Promise<Principal>;

/** @param verifyToken Verifies bearer tokens; undefined if the catalog itself issues them. */
export function createAuthenticator(
  store: Store,
  verifyToken: TokenVerifier | undefined,
  isolatedNamespaces: readonly string[],
): Authenticator {
  const { read } = store;
  /** Finds the owner of a key or of a token, with its roles. Those of the key of an attempt also depend on the time. */
  const findOwner = (kind: Credential["kind"], hash: string) =>
    read.cached(`${kind} ${hash}`, async () => {
      const owner = await (kind === "bearer" ? findApiKeyOfToken : findApiKey)(read, hash);
      return owner && { ...owner, grants: owner.job === undefined ? await listGrantsOf(read, owner.principal) : [] };
    });

  return async (credential) => {
    if (credential === undefined)
      throw new CatalogError("Unauthenticated", "no credential: send Authorization: Bearer <token>, or x-api-key");
    const isToken = credential.kind === "bearer";
    if (isToken && verifyToken !== undefined) {
      const name = await verifyToken(credential.token);
      return { name, grants: await read.cached(`grants ${name}`, () => listGrantsOf(read, name)) };
    }
    const secret = isToken ? credential.token : ApiKeySecret.safeParse(credential.key).data;
    const owner = secret === undefined ? undefined : await findOwner(credential.kind, hashApiKey(secret));
    if (owner === undefined || (owner.expiresAtMillis !== undefined && isExpired(owner.expiresAtMillis, read.time())))
      throw new CatalogError(
        "Unauthenticated",
        isToken
          ? "the token is not known or has expired. Send an API key as x-api-key"
          : "the API key is not known or was revoked",
      );
    const { id: apiKeyId, principal: name, job, attempt: number = 0, creator = "" } = owner;
    if (job === undefined) return { name, grants: owner.grants, apiKeyId };
    const attempt = { id: job, attempt: number, creator };
    return { name, grants: await grantsOfAttempt(read, attempt, isolatedNamespaces), apiKeyId, attempt };
  };
}
