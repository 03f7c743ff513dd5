import { bodies, CatalogError, Identity } from "@tiltyard/protocol";
import { createMiddleware } from "hono/factory";
import { z } from "zod";
import type { Authenticator, Credential } from "../../auth/authenticator.ts";
import type { AppContext, AppEnv } from "../context.ts";
import type { ClientAddress } from "./client-address.ts";
import { readJson } from "./json-body.ts";
import type { FailedCredentials } from "./rate-limit.ts";

export interface AuthenticationDeps {
  readonly authenticator: Authenticator;
  readonly failedCredentials: FailedCredentials;
  readonly clientAddress: ClientAddress;
}

const Envelope = z.object({ identity: Identity.nullish() }).catch({});

/**
 * Authenticates the caller. `Authorization` has precedence over `x-api-key`, and headers have precedence over the
 * `identity` of the body; only the first credential counts, valid or not. A body is read before authentication only if
 * the headers contain no credential, and only if it is small.
 */
export function authenticate(deps: AuthenticationDeps) {
  return createMiddleware<AppEnv>(async function authenticate(c, next) {
    const credential = headerCredential(c) ?? (await bodyCredential(c));
    c.set("principal", await verifyCredential(credential, c, deps));
    await next();
  });
}

/**
 * Verifies a credential. @throws CatalogError Unauthenticated; Throttling for an address with too many invalid
 * credentials.
 */
export async function verifyCredential(credential: Credential | undefined, c: AppContext, deps: AuthenticationDeps) {
  try {
    return await deps.authenticator.authenticate(credential);
  } catch (error) {
    const isInvalid = error instanceof CatalogError && error.kind === "Unauthenticated" && credential !== undefined;
    if (isInvalid) await deps.failedCredentials(deps.clientAddress(c), error);
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

async function bodyCredential(c: AppContext): Promise<Credential | undefined> {
  const { identity } = Envelope.parse(await readAnonymousJson(c));
  if (identity?.auth_token !== undefined) return { kind: "bearer", token: identity.auth_token };
  return identity?.api_key === undefined ? undefined : { kind: "api-key", key: identity.api_key };
}

async function readAnonymousJson(c: AppContext): Promise<unknown> {
  try {
    return await readJson(c, bodies.small, "anonymous");
  } catch (error) {
    if (!(error instanceof CatalogError) || error.kind !== "InvalidInput") throw error;
    throw new CatalogError(
      "Unauthenticated",
      "no credential: the request has none in its headers, and its body cannot be read",
    );
  }
}
