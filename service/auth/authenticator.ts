import { CatalogError } from "@tiltyard/protocol";
import { findApiKey, findApiKeyOfToken, type JobAttempt, type KeyOwner } from "../store/api-keys.ts";
import { type JobGrant, listGrantsOf } from "../store/grants.ts";
import type { Store } from "../store/store.ts";
import { ApiKeySecret, hashApiKey } from "./api-key.ts";
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

export interface Authenticator {
  /** @throws CatalogError Unauthenticated; ServiceUnavailable if the keys of the issuer cannot be fetched. */
  authenticate(credential: Credential | undefined): Promise<Principal>;
}

/** @param verifyToken Verifies bearer tokens; undefined if the catalog itself issues them. */
export function createAuthenticator(
  store: Store,
  verifyToken: TokenVerifier | undefined,
  isolatedNamespaces: readonly string[] = [],
): Authenticator {
  const named = async (name: string): Promise<Principal> => ({ name, grants: await listGrantsOf(store.read, name) });
  /** Finds the owner of a secret. */
  async function findOwner(credential: Credential): Promise<KeyOwner> {
    const isToken = credential.kind === "bearer";
    const secret = isToken ? credential.token : ApiKeySecret.safeParse(credential.key).data;
    const refusal = () =>
      new CatalogError(
        "Unauthenticated",
        isToken ? "the token is not known or has expired" : "the API key is not known or was revoked",
      );
    if (secret === undefined) throw refusal();
    const owner = await (isToken ? findApiKeyOfToken : findApiKey)(store.read, hashApiKey(secret));
    if (owner === undefined || (owner.expiresAtMillis !== undefined && owner.expiresAtMillis <= Date.now()))
      throw refusal();
    return owner;
  }
  async function principalOf({ id, principal, job, attempt = 0, creator = "" }: KeyOwner): Promise<Principal> {
    if (job === undefined) return { ...(await named(principal)), apiKeyId: id };
    const of = { id: job, attempt, creator };
    const grants = await grantsOfAttempt(store.read, of, isolatedNamespaces);
    return { name: principal, grants, apiKeyId: id, attempt: of };
  }

  return {
    authenticate: async (credential) => {
      if (credential === undefined)
        throw new CatalogError("Unauthenticated", "no credential: send Authorization: Bearer <token>, or x-api-key");
      if (credential.kind === "bearer" && verifyToken !== undefined) return named(await verifyToken(credential.token));
      return principalOf(await findOwner(credential));
    },
  };
}
