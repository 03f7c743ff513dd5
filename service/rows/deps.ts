import type { CrashIsolation, Deadlines } from "@tiltyard/lance-worker";
import { formatIdentifier, type Identifier } from "@tiltyard/protocol";
import type { CommitDeps } from "../commits/deps.ts";
import type { Origin } from "../domain/transaction.ts";
import type { Gateway } from "./gateway.ts";

export interface RowsDeps extends CommitDeps {
  readonly gateway: Gateway;
  readonly isolation: CrashIsolation;
}

export function callBy(operation: string, { principal, signal }: Origin, id: Identifier, deadlines: Deadlines) {
  return { principal: principal.name, call: `${operation} ${formatIdentifier(id)}`, signal, deadlines };
}
