import { extname } from "node:path";
import { consoleAssets } from "@tiltyard/console";
import { ownValue } from "@tiltyard/protocol";
import type { Hono } from "hono";
import { etag } from "hono/etag";
import { html } from "hono/html";
import { secureHeaders } from "hono/secure-headers";

const contentTypes: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};

/** Finds a file of the package `@tiltyard/console`. */
export async function findAsset(name: string) {
  const content = (await consoleAssets()).get(name);
  return content && { content, type: `${ownValue(contentTypes, extname(name))}; charset=utf-8` };
}

/** The parameters of sign-ins through an OIDC issuer. The console is a public client, so none is a secret. */
export interface SignIn {
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
  readonly scope: string;
}

/**
 * Serves the console: a page that calls the operations with the credential of its user. It may load everything from
 * this service, nothing inline, and no other site may frame it. It may also call the issuer of its sign-in.
 */
export function mountConsole(app: Hono, signIn: SignIn | undefined): void {
  const headers = secureHeaders({
    strictTransportSecurity: false,
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'"],
      connectSrc: ["'self'", ...(signIn === undefined ? [] : [new URL(signIn.issuer).origin])],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
  });
  app.get("/console/:name?", headers, etag(), async (c, next) => {
    const name = c.req.param("name") ?? "index.html";
    const asset = await findAsset(name);
    if (asset === undefined) return next();
    const body = name === "index.html" && signIn !== undefined ? withSignIn(asset.content, signIn) : asset.content;
    return c.body(body, 200, { "content-type": asset.type, "cache-control": "no-cache" });
  });
  // The links of the page are relative, so they work under any path.
  app.get("/console/", (c) => c.redirect("../console"));
}

/** Inserts the parameters of the sign-in into the page, which thus needs no further request for them. */
function withSignIn(page: Uint8Array, signIn: SignIn): string {
  const meta = html`<meta name="sign-in" content="${JSON.stringify(signIn)}">`;
  return new TextDecoder().decode(page).replace("</head>", () => `  ${meta}\n  </head>`);
}
