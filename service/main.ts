#!/usr/bin/env node
import { runCommandLine } from "./command-line.ts";

for (const stream of [process.stdout, process.stderr]) stream.on("error", ignoreClosedPipe);
await runCommandLine(process.argv.slice(2));

/** A reader such as `head` leaves when it has enough. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}
