#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { join } from "node:path";

// The cache speeds up the next start. Node's default folder is shared by all users and thus could contain code of
// others.
enableCompileCache(join(import.meta.dirname, "../.cache/compiled"));
const { surviveOutputErrors } = await import("@tiltyard/protocol");
const { runCommandLine } = await import("./command-line.ts");

surviveOutputErrors(process);
await runCommandLine(process.argv.slice(2));
// An abandoned pass may still wait for a response.
process.exit();
