import { join } from "node:path";
import { contracts, managementContracts, requestShape } from "@tiltyard/protocol";
import { type BuildResult, build } from "esbuild";

const app = join(import.meta.dirname, "app");
const entryPoints = ["index.html", "console.css", "icon.svg", "main.tsx", "theme.ts"].map((name) => join(app, name));

/** The method and the path of each operation. The contracts themselves stay out of the bundle with their schemas. */
const operations = Object.fromEntries(
  Object.entries({ ...contracts, ...managementContracts }).map(([name, contract]) => [name, requestShape(contract)]),
);

/** Bundles the console into files at the top of a folder. */
export function bundle<Write extends boolean>(
  outdir: string,
  write: Write,
): Promise<BuildResult<{ write: Write; entryPoints: string[] }>> {
  return build({
    entryPoints,
    outdir,
    write,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2024",
    jsx: "automatic",
    jsxImportSource: "preact",
    define: { OPERATIONS: JSON.stringify(operations), "process.env.NODE_ENV": '"production"' },
    loader: { ".html": "copy", ".svg": "copy" },
    assetNames: "[name]",
    logLevel: "silent",
  });
}
