import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  contracts,
  delimiterFor,
  httpRequest,
  includedRoles,
  managementContracts,
  requestShape,
  roles,
  transactionStatuses,
} from "@tiltyard/protocol";
import type { Hono } from "hono";
import { secureHeaders } from "hono/secure-headers";

const folder = join(import.meta.dirname, "../console");
const contentTypes: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};

/** The installed packages that the page loads, by their names below `/console/libraries`. */
const libraries = {
  "preact.js": import.meta.resolve("preact"),
  "hooks.js": import.meta.resolve("preact/hooks"),
  "htm.js": import.meta.resolve("htm"),
  "pico.css": import.meta.resolve("@picocss/pico/css/pico.jade.min.css"),
} as const;

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
  app.use("/console", headers);
  app.use("/console/*", headers);
  const serve = (path: string, content: string, contentType: string) => {
    const type = `${contentType}; charset=utf-8`;
    app.get(path, (c) => c.body(content, 200, { "content-type": type, "cache-control": "no-cache" }));
  };
  const serveFile = (name: string, file: string | URL) => {
    const contentType = contentTypes[extname(name)];
    if (contentType !== undefined) serve(`/console/${name}`, withPaths(readFileSync(file, "utf8")), contentType);
  };
  serve("/console", readFileSync(join(folder, "index.html"), "utf8"), "text/html");
  for (const name of readdirSync(folder)) serveFile(name, join(folder, name));
  for (const [name, url] of Object.entries(libraries)) serveFile(`libraries/${name}`, fileURLToPath(url));
  serve("/console/contracts.js", contractsModule(), "text/javascript");
  // The links of the page are relative, so they work under any path.
  app.get("/console/", (c) => c.redirect("../console"));
}

/** Replaces package names by paths, because browsers resolve no package names: `preact/hooks` imports `preact`. */
function withPaths(script: string): string {
  return script.replaceAll('from"preact"', 'from"./preact.js"');
}

/** Renders the part of the contracts that the console needs; service/console/contracts.d.ts declares its types. */
function contractsModule(): string {
  const operations = Object.entries({ ...contracts, ...managementContracts }).map(([name, contract]) => [
    name,
    requestShape(contract),
  ]);
  const exported = { operations: Object.fromEntries(operations), includedRoles, roles, transactionStatuses };
  const values = Object.entries(exported).map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};\n`);
  // The text of a function at run time is JavaScript.
  const functions = [delimiterFor, httpRequest].map((each) => `export ${each}\n`);
  return [...values, ...functions].join("");
}
