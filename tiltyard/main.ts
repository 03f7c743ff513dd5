#!/usr/bin/env node
/** The client's command, installed with what it hands over to: the catalog and the runner. */
import "@tiltyard/client/command";
