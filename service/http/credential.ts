import type { Identity } from "@tiltyard/protocol";
import type { z } from "zod";
import type { Credential } from "../auth/authenticator.ts";
import { type Exchange, headerOf } from "./exchange.ts";

/**
 * The credential of a request's headers. `Authorization` comes before `x-api-key`, and the
 * first one that is present is the one that counts, valid or not.
 */
export function credentialOfHeaders(exchange: Exchange): Credential | undefined {
  const authorization = headerOf(exchange, "authorization");
  // A scheme other than Bearer leaves an empty token, which no verifier accepts.
  if (authorization !== undefined) return { kind: "bearer", token: /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? "" };
  const key = headerOf(exchange, "x-api-key");
  return key === undefined ? undefined : { kind: "api-key", key };
}

/** The credential of a request's body, for callers that cannot set headers. */
export function credentialOfIdentity(identity: z.infer<typeof Identity> | undefined): Credential | undefined {
  if (identity?.auth_token !== undefined) return { kind: "bearer", token: identity.auth_token };
  return identity?.api_key === undefined ? undefined : { kind: "api-key", key: identity.api_key };
}
