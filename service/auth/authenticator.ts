import { CatalogError } from "@tiltyard/protocol";
import { LRUCache } from "lru-cache";
import { findApiKey, findApiKeyOfToken, type JobAttempt, type KeyOwner } from "../store/api-keys.ts";
import { type JobGrant, listGrantsOf } from "../store/grants.ts";
import type { Store } from "../store/store.ts";
import { ApiKeySecret, hashApiKey } from "./api-key.ts";
import { grantsOfAttempt } from "./job-key.ts";
import type { TokenVerifier } from "./token-verifier.ts";

/** The maximum age of cached roles. Other processes, such as replicas and the command line, also change roles. */
const grantsKeptMs = 500;
const principalsKept = 10_000;

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
  /** Removes cached roles, so that the next request of the principal reads them from the database. */
  forgetRoles(name: string): void;
}

/** @param verifyToken Verifies bearer tokens; undefined if the catalog itself issues them. */
export function createAuthenticator(
  store: Store,
  verifyToken: TokenVerifier | undefined,
  isolatedNamespaces: readonly string[] = [],
): Authenticator {
  const kept = new LRUCache<string, readonly JobGrant[]>({ max: principalsKept, ttl: grantsKeptMs });
  let changes = 0;

  async function grantsOf(key: string, read: () => Promise<readonly JobGrant[]>): Promise<readonly JobGrant[]> {
    const present = kept.get(key);
    if (present !== undefined) return present;
    const changesBefore = changes;
    const grants = await read();
    // A change during the read may have outdated its result.
    if (changes === changesBefore) kept.set(key, grants);
    return grants;
  }
  const named = async (name: string): Promise<Principal> => ({
    name,
    grants: await grantsOf(name, () => listGrantsOf(store.read, name)),
  });
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
    // A control character separates these keys from names of principals, which contain none.
    const grants = await grantsOf(`\0${of.id} ${id}`, () => grantsOfAttempt(store.read, of, isolatedNamespaces));
    return { name: principal, grants, apiKeyId: id, attempt: of };
  }

  return {
    authenticate: async (credential) => {
      if (credential === undefined)
        throw new CatalogError("Unauthenticated", "no credential: send Authorization: Bearer <token>, or x-api-key");
      if (credential.kind === "bearer" && verifyToken !== undefined) return named(await verifyToken(credential.token));
      return principalOf(await findOwner(credential));
    },
    forgetRoles: (name) => {
      changes += 1;
      kept.delete(name);
    },
  };
}
