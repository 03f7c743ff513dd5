import { bodies, CatalogError, hasKind, Identity } from "@tiltyard/protocol";
import { RateLimiterRes } from "rate-limiter-flexible";
import { z } from "zod";
import { claimedKeyId } from "../auth/api-key.ts";
import type { Authenticator, Credential, Principal } from "../auth/authenticator.ts";
import { fieldTreeOf, withoutNulls } from "../domain/request-fields.ts";
import type { Limiter } from "../store/store.ts";
import type { BodyMemory } from "./body-memory.ts";
import type { ClientAddress } from "./client-address.ts";
import type { AppContext } from "./context.ts";
import { readText } from "./json-body.ts";

export interface AuthenticationDeps {
  readonly authenticator: Authenticator;
  /** Limits the rejected credentials of an address. Valid ones do not count, because callers may share an address. */
  readonly failedCredentials: Limiter;
  readonly clientAddress: ClientAddress;
  readonly bodyMemory: BodyMemory;
}

const Envelope = z.object({ identity: Identity.optional() }).catch({});
const envelopeFields = fieldTreeOf(z.object({ identity: Identity.optional() }));

/**
 * Authenticates the caller. `Authorization` has precedence over `x-api-key`, and headers have precedence over the
 * `identity` of the body; only the first credential counts, valid or not. A body is read before authentication only if
 * the headers contain no credential, and only if it is small.
 */
export async function authenticate(c: AppContext, deps: AuthenticationDeps): Promise<Principal> {
  const principal = await verifyCredential(headerCredential(c) ?? (await bodyCredential(c, deps)), c, deps);
  c.set("principal", principal);
  return principal;
}

/** Verifies a credential. @throws CatalogError Unauthenticated; Throttling after too many invalid ones. */
export async function verifyCredential(credential: Credential | undefined, c: AppContext, deps: AuthenticationDeps) {
  try {
    return await deps.authenticator(credential);
  } catch (error) {
    if (!hasKind(error, "Unauthenticated")) throw error;
    const caller = deps.clientAddress(c);
    c.set("refusal", { caller, apiKeyId: credential?.kind === "api-key" ? claimedKeyId(credential.key) : undefined });
    const problem = `${error.message}; this address has sent too many invalid credentials`;
    if (credential !== undefined) await countCall(deps.failedCredentials, caller, problem);
    throw error;
  }
}

function headerCredential(c: AppContext): Credential | undefined {
  const authorization = c.req.header("authorization");
  // A scheme other than Bearer yields an empty token, which no verifier accepts.
  if (authorization !== undefined) return { kind: "bearer", token: /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? "" };
  const key = c.req.header("x-api-key");
  return key === undefined ? undefined : { kind: "api-key", key };
}

async function bodyCredential(c: AppContext, { bodyMemory }: AuthenticationDeps): Promise<Credential | undefined> {
  try {
    const json: unknown = JSON.parse(await readText(c, bodies.small, bodyMemory, "anonymous"));
    withoutNulls(envelopeFields, json);
    const { identity } = Envelope.parse(json);
    if (identity?.auth_token !== undefined) return { kind: "bearer", token: identity.auth_token };
    return identity?.api_key === undefined ? undefined : { kind: "api-key", key: identity.api_key };
  } catch (error) {
    const isUnreadable = error instanceof CatalogError ? error.kind === "InvalidInput" : error instanceof SyntaxError;
    if (!isUnreadable) throw error;
    throw new CatalogError(
      "Unauthenticated",
      "no credential: the request has none in its headers, and its body cannot be read",
    );
  }
}

/** Counts a call for a key. @throws CatalogError Throttling with the problem if the key has exceeded its limit. */
export async function countCall(limiter: Limiter, key: string, problem: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    const retryAfterSeconds = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
    throw new CatalogError("Throttling", problem, { retryAfterSeconds });
  }
}
