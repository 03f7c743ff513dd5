import type { OutgoingHttpHeaders } from "node:http";
import { CatalogError } from "@tiltyard/protocol";
import { type DevelopmentIssuer, tokenLifetimeSeconds } from "../auth/development-issuer.ts";
import { authenticate } from "./admit.ts";
import { jsonAnswer, send } from "./answer.ts";
import { type Exchange, headerOf, type Serve } from "./exchange.ts";
import type { OperationParts } from "./operation.ts";
import { readText } from "./read-body.ts";

/** A grant has three fields, and the longest is a key. */
const formBytesMax = 8 * 1024;
const fieldsMax = 16;

/**
 * `POST /oauth/token` with the client-credentials grant (RFC 6749, 4.4): the client's
 * secret is an API key, and the token speaks for the principal of that key.
 */
export function tokenEndpoint(issuer: DevelopmentIssuer, parts: OperationParts): Serve {
  return async (exchange) => {
    using lease = parts.bodyMemory.lease({ isAnonymous: true });
    const form = readForm(await readText(exchange, formBytesMax, lease));
    if (form.get("grant_type") !== "client_credentials")
      return refuse(
        exchange,
        "unsupported_grant_type",
        new CatalogError("InvalidInput", "grant_type: must be client_credentials"),
      );
    try {
      const principal = await authenticate({ kind: "api-key", key: secretOf(exchange, form) }, exchange, parts);
      const token = {
        access_token: await issuer.issue(principal),
        token_type: "Bearer",
        expires_in: tokenLifetimeSeconds,
      };
      send(exchange, jsonAnswer(200, JSON.stringify(token), { "cache-control": "no-store" }));
    } catch (error) {
      if (!(error instanceof CatalogError) || error.kind !== "Unauthenticated") throw error;
      return refuse(
        exchange,
        "invalid_client",
        new CatalogError("Unauthenticated", "client_secret: is not an API key of this catalog"),
        { "www-authenticate": "Basic" },
      );
    }
  };
}

/** @throws CatalogError InvalidInput for a form with more fields than any grant has. */
function readForm(text: string): URLSearchParams {
  if (text.split("&", fieldsMax + 1).length > fieldsMax)
    throw new CatalogError("InvalidInput", `the form has more than ${fieldsMax} fields`);
  return new URLSearchParams(text);
}

/** The client's secret, from Basic authentication or from the form. */
function secretOf(exchange: Exchange, form: URLSearchParams): string {
  const basic = /^Basic +(\S+)$/i.exec(headerOf(exchange, "authorization") ?? "")?.[1];
  if (basic === undefined) return form.get("client_secret") ?? "";
  const [, ...secret] = Buffer.from(basic, "base64").toString("utf8").split(":");
  return decodeURIComponentOr(secret.join(":"));
}

/** RFC 6749 has the parts of Basic authentication form-encoded, which many clients leave out. */
function decodeURIComponentOr(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The error body of the service, with the `error` that OAuth clients look for. */
function refuse(exchange: Exchange, oauthError: string, error: CatalogError, headers: OutgoingHttpHeaders = {}): void {
  const body = { ...error.toResponse(exchange.path), error: oauthError, error_description: error.message };
  send(exchange, jsonAnswer(error.status, JSON.stringify(body), headers));
}
