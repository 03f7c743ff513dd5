#!/usr/bin/env node
import { ignoreClosedPipes } from "@tiltyard/protocol";
import { runCommandLine } from "./command-line.ts";

ignoreClosedPipes([process.stdout, process.stderr]);
await runCommandLine(process.argv.slice(2));
