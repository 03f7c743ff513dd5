import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { catalogContracts, managementContracts, requestShape } from "@tiltyard/protocol";
import { build, type OutputFile } from "esbuild";

const app = join(import.meta.dirname, "app");
const entryPoints = ["index.html", "console.css", "icon.svg", "main.tsx", "issuer.ts", "theme.ts"].map((name) =>
  join(app, name),
);

/** The method and the path of each operation. The contracts themselves stay out of the bundle with their schemas. */
const operations = Object.fromEntries(
  Object.entries({ ...catalogContracts, ...managementContracts }).map(([name, contract]) => [
    name,
    requestShape(contract),
  ]),
);

/** The files of Swagger UI, which is bundled already. */
const swagger = dirname(fileURLToPath(import.meta.resolve("swagger-ui-dist/package.json")));
const swaggerFiles = ["swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-standalone-preset.js"];

/** Bundles the console, and copies Swagger UI, into files at the top of a folder. @returns The files if none is written. */
export async function bundle(outdir: string, write: boolean): Promise<readonly OutputFile[]> {
  const shared = { outdir, write, bundle: true, assetNames: "[name]", logLevel: "silent" } as const;
  const page = await build({
    ...shared,
    entryPoints,
    minify: true,
    format: "esm",
    // The page loads this file only for catalogs with an issuer.
    external: ["./issuer.js"],
    target: "es2024",
    jsx: "automatic",
    jsxImportSource: "preact",
    define: { OPERATIONS: JSON.stringify(operations), "process.env.NODE_ENV": '"production"' },
    loader: { ".html": "copy", ".svg": "copy" },
  });
  const docs = await build({
    ...shared,
    entryPoints: swaggerFiles.map((name) => join(swagger, name)),
    loader: { ".css": "copy", ".js": "copy" },
  });
  return [...(page.outputFiles ?? []), ...(docs.outputFiles ?? [])];
}
