#!/usr/bin/env node
import "@tiltyard/protocol/node-version";

await import("@tiltyard/runner/command");
