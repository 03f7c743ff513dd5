#!/usr/bin/env node
/** The command of the client, installed with the programs that it starts: the catalog and the runner. */
import "@tiltyard/protocol/node-version";

await import("@tiltyard/client/command");
