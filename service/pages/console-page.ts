import { extname } from "node:path";
import { consoleAssets } from "@tiltyard/console";
import type { Hono } from "hono";
import { etag } from "hono/etag";
import { secureHeaders } from "hono/secure-headers";

const contentTypes: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};

/** The headers of the page. It may load everything from this service, nothing inline, and no other site may frame it. */
const headers = secureHeaders({
  strictTransportSecurity: false,
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'"],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
});

/** Serves the console: a page that calls the operations with the credential of its user. */
export function mountConsole(app: Hono): void {
  app.get("/console/:name?", headers, etag(), async (c, next) => {
    const name = c.req.param("name") ?? "index.html";
    const content = (await consoleAssets()).get(name);
    if (content === undefined) return next();
    const type = `${contentTypes[extname(name)]}; charset=utf-8`;
    return c.body(content, 200, { "content-type": type, "cache-control": "no-cache" });
  });
  // The links of the page are relative, so they work under any path.
  app.get("/console/", (c) => c.redirect("../console"));
}
