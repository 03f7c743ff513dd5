#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { join } from "node:path";

// Node keeps what it compiles for the next start. Its default is a folder that all users share, and so could hold code of others.
enableCompileCache(join(import.meta.dirname, "../.cache/compiled"));
const { ignoreClosedPipes } = await import("@tiltyard/protocol");
const { runCommandLine } = await import("./command-line.ts");

ignoreClosedPipes([process.stdout, process.stderr]);
await runCommandLine(process.argv.slice(2));
