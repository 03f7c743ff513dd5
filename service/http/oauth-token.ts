import { zValidator } from "@hono/zod-validator";
import { CatalogError, type ErrorKind, hasKind } from "@tiltyard/protocol";
import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { createMiddleware } from "hono/factory";
import { auth } from "hono/utils/basic-auth";
import { z } from "zod";
import { tokenLifetimeSeconds } from "../auth/api-key.ts";
import type { DevelopmentIssuer } from "../auth/development-issuer.ts";
import { type AuthenticationDeps, verifyCredential } from "./authenticate.ts";
import type { AppContext, AppEnv } from "./context.ts";
import { inTime } from "./json-body.ts";

export const tokenPath = "/oauth/token";
/** The maximum size of a token request, which has three fields; the longest is a key. */
const formBytesMax = 8 * 1024;
const unsupported = "grant_type: must be client_credentials in a form";
const Grant = z.object({ grant_type: z.literal("client_credentials"), client_secret: z.string().optional() });

/** Serves the client-credentials grant (RFC 6749, section 4.4). The client's secret is an API key. */
export function oauthToken(issueToken: DevelopmentIssuer, deps: AuthenticationDeps): MiddlewareHandler<AppEnv>[] {
  return [
    bodyLimit({
      maxSize: formBytesMax,
      onError: () => {
        throw new CatalogError("PayloadTooLarge", `the form may have ${formBytesMax} bytes at most`);
      },
    }),
    (_, next) => inTime(next()),
    zValidator("form", Grant, ({ success }, c) =>
      success ? undefined : refuse(c as AppContext, "unsupported_grant_type", "InvalidInput", unsupported),
    ) as MiddlewareHandler<AppEnv>,
    createMiddleware<AppEnv, string, { out: { form: z.infer<typeof Grant> } }>(async function respondToken(c) {
      const { client_secret: formSecret = "" } = c.req.valid("form");
      try {
        const principal = await verifyCredential({ kind: "api-key", key: basicSecret(c) ?? formSecret }, c, deps);
        c.header("cache-control", "no-store");
        return c.json({
          access_token: await issueToken(principal),
          token_type: "Bearer",
          expires_in: tokenLifetimeSeconds,
        });
      } catch (error) {
        if (!hasKind(error, "Unauthenticated")) throw error;
        c.header("www-authenticate", "Basic");
        return refuse(c, "invalid_client", "Unauthenticated", "client_secret: is not an API key of this catalog");
      }
    }),
  ];
}

/** Returns the client's secret from Basic authentication. RFC 6749 requires form encoding, but many clients omit it. */
function basicSecret(c: AppContext): string | undefined {
  const password = auth(c.req.raw)?.password;
  try {
    return password && decodeURIComponent(password);
  } catch {
    return password;
  }
}

/** Renders the error body of the service with the `error` field that OAuth clients read. */
function refuse(c: AppContext, oauthError: string, kind: ErrorKind, message: string): Response {
  const error = new CatalogError(kind, message);
  const body = { ...error.toResponse(c.req.path, c.get("requestId")), error: oauthError, error_description: message };
  return c.json(body, error.status);
}
