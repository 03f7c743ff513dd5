import { type ChildOptions, createChild, createCrashIsolation } from "@tiltyard/lance-worker";
import type { CommitDeps } from "../commits/deps.ts";
import { type ChangeRows, createChange } from "./change.ts";
import { createGateway } from "./gateway.ts";
import { createReader, type Reader } from "./reader.ts";

export interface Rows extends Reader, AsyncDisposable {
  readonly change: ChangeRows;
}

export function createRows(commitDeps: CommitDeps, options: ChildOptions): Rows {
  const gateway = createGateway();
  const shared = createChild(options);
  const isolation = createCrashIsolation(shared, createChild({ ...options, beside: shared }));
  const deps = { ...commitDeps, gateway, isolation };
  const reader = createReader(deps);
  return {
    ...reader,
    change: createChange(deps),
    [Symbol.asyncDispose]: async () => {
      await isolation[Symbol.asyncDispose]();
      reader[Symbol.dispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}
