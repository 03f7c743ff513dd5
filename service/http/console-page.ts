import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import type { Context, Hono } from "hono";

const folder = join(import.meta.dirname, "../console");
const contentTypes: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};

/** Everything comes from this service, nothing is written into the page itself, and no other site may frame it. */
const headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache",
};

/** Serves the console: a page that calls the operations with the credential of its user. */
export function mountConsole(app: Hono): void {
  const serve = (path: string, name: string, contentType: string) => {
    const content = readFileSync(join(folder, name));
    app.get(path, (context: Context) => context.body(content, 200, { ...headers, "content-type": contentType }));
  };
  serve("/console", "index.html", "text/html; charset=utf-8");
  for (const name of readdirSync(folder)) {
    const contentType = contentTypes[extname(name)];
    if (contentType !== undefined) serve(`/console/${name}`, name, `${contentType}; charset=utf-8`);
  }
  // The page's links are relative to where it is, so that they work under any path.
  app.get("/console/", (context) => context.redirect("../console"));
}
