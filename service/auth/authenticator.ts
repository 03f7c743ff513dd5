import {
  type Access,
  CatalogError,
  formatIdentifier,
  type Identifier,
  includedRoles,
  type Role,
} from "@tiltyard/protocol";
import { LRUCache } from "lru-cache";
import { findApiKey, type Grant, listGrantsOf } from "../store/principals.ts";
import type { Store } from "../store/store.ts";
import { hashApiKey } from "./api-key.ts";
import { grantsOfAttempt } from "./job-key.ts";
import type { TokenVerifier } from "./token-verifier.ts";

/** How long a principal's roles count as they were read. Other processes change them, too: the command line, and replicas. */
const grantsKeptMs = 1_000;
const principalsKept = 10_000;

/** What a caller proves its identity with. */
export type Credential =
  | { readonly kind: "bearer"; readonly token: string }
  | { readonly kind: "api-key"; readonly key: string };

/** A caller whose credential was accepted. */
export interface Principal {
  readonly name: string;
  readonly grants: readonly Grant[];
}

export interface Authenticator {
  /**
   * @throws CatalogError Unauthenticated for a credential that is missing or not valid,
   *   ServiceUnavailable when the issuer's keys cannot be had.
   */
  authenticate(credential: Credential | undefined): Promise<Principal>;
  /** The next request of a principal reads its roles from the database. */
  forgetRoles(name: string): void;
}

export function createAuthenticator(store: Store, tokens: TokenVerifier): Authenticator {
  const kept = new LRUCache<string, Principal>({ max: principalsKept, ttl: grantsKeptMs });
  let changes = 0;

  async function keep(key: string, name: string, read: () => Promise<readonly Grant[]>): Promise<Principal> {
    const changesBefore = changes;
    const principal = { name, grants: await read() };
    // A change during the read may have made its result stale.
    if (changes === changesBefore) kept.set(key, principal);
    return principal;
  }
  const named = (name: string) => kept.get(name) ?? keep(name, name, () => listGrantsOf(store.read, name));

  return {
    authenticate: async (credential) => {
      if (credential === undefined)
        throw new CatalogError("Unauthenticated", "no credential: send Authorization: Bearer <token>, or x-api-key");
      if (credential.kind === "bearer") return named(await tokens.verify(credential.token));
      const found = await findApiKey(store.read, hashApiKey(credential.key));
      if (found === undefined) throw new CatalogError("Unauthenticated", "the API key is not known or was revoked");
      const { principal, of } = found;
      if (of === undefined) return named(principal);
      // No name of a principal has a control character.
      const key = `\0${of.id} ${of.attempt}`;
      return kept.get(key) ?? keep(key, principal, () => grantsOfAttempt(store.read, of));
    },
    forgetRoles: (name) => {
      changes += 1;
      kept.delete(name);
    },
  };
}

/** @throws CatalogError PermissionDenied unless the principal has every one of the rights. */
export function authorize(principal: Principal, accesses: readonly Access[]): void {
  for (const access of accesses)
    if (!isAllowed(principal, access))
      throw new CatalogError("PermissionDenied", `${principal.name} needs the role ${access.role} ${placeOf(access)}`);
}

/** Whether the principal has a right. */
export function isAllowed(principal: Principal, access: Access): boolean {
  return principal.grants.some((grant) => includes(grant, access));
}

function placeOf({ object }: Access): string {
  return object === "anywhere"
    ? "on what it changes"
    : `on ${formatIdentifier(object)} or on a namespace that holds it`;
}

function includes(grant: Grant, { role, orRole, object }: Access): boolean {
  const included: readonly Role[] = includedRoles[grant.role];
  const suffices = included.includes(role) || (orRole !== undefined && included.includes(orRole));
  return suffices && (object === "anywhere" || isWithin(object, grant.namespace));
}

function isWithin(object: Identifier, namespace: Identifier): boolean {
  return namespace.every((part, index) => object[index] === part);
}
