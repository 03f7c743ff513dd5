import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { contracts, includedRoles, managementContracts, roles, transactionStatuses } from "@tiltyard/protocol";
import type { Context, Hono } from "hono";

const folder = join(import.meta.dirname, "../console");
const contentTypes: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};

/** The packages that the page loads, as they are installed, by what they are called below `/console/libraries`. */
const libraries = {
  "preact.js": import.meta.resolve("preact"),
  "hooks.js": import.meta.resolve("preact/hooks"),
  "htm.js": import.meta.resolve("htm"),
  "pico.css": import.meta.resolve("@picocss/pico/css/pico.jade.min.css"),
} as const;

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
  const serve = (path: string, content: string, contentType: string) => {
    const type = `${contentType}; charset=utf-8`;
    app.get(path, (context: Context) => context.body(content, 200, { ...headers, "content-type": type }));
  };
  const serveFile = (name: string, file: string | URL) => {
    const contentType = contentTypes[extname(name)];
    if (contentType !== undefined) serve(`/console/${name}`, withPaths(readFileSync(file, "utf8")), contentType);
  };
  serve("/console", readFileSync(join(folder, "index.html"), "utf8"), "text/html");
  for (const name of readdirSync(folder)) serveFile(name, join(folder, name));
  for (const [name, url] of Object.entries(libraries)) serveFile(`libraries/${name}`, fileURLToPath(url));
  serve("/console/contracts.js", contractsModule(), "text/javascript");
  // The page's links are relative to where it is, so that they work under any path.
  app.get("/console/", (context) => context.redirect("../console"));
}

/** A browser finds no package by its name: `preact/hooks` imports `preact`. */
function withPaths(script: string): string {
  return script.replaceAll('from"preact"', 'from"./preact.js"');
}

/** What the console knows of the contracts. service/console/contracts.d.ts has its types. */
function contractsModule(): string {
  const operations = Object.entries({ ...contracts, ...managementContracts }).map(([name, contract]) => {
    const method = contract.methods.includes("POST") ? "POST" : "GET";
    return [name, { method, path: contract.path, query: Object.keys(contract.query.shape) }];
  });
  const exported = { operations: Object.fromEntries(operations), includedRoles, roles, transactionStatuses };
  return Object.entries(exported)
    .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};\n`)
    .join("");
}
