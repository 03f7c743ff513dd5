import { type ChildOptions, createChild, createCrashIsolation } from "@tiltyard/lance-worker";
import type { CommitParts } from "../commits/parts.ts";
import { type ChangeRows, createChange } from "./change.ts";
import { createGateway } from "./gateway.ts";
import { createReader, type Reader } from "./reader.ts";

export interface Rows extends Reader, AsyncDisposable {
  readonly change: ChangeRows;
}

export function createRows(commitParts: CommitParts, options: ChildOptions): Rows {
  const gateway = createGateway();
  const shared = createChild(options);
  const isolation = createCrashIsolation(shared, createChild({ ...options, beside: shared }));
  const parts = { ...commitParts, gateway, isolation };
  const reader = createReader(parts);
  return {
    ...reader,
    change: createChange(parts),
    [Symbol.asyncDispose]: async () => {
      await isolation[Symbol.asyncDispose]();
      reader[Symbol.dispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}
