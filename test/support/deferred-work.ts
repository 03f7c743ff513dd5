import { afterAll } from "vitest";
import { createFinishing } from "../../service/commits/finish.ts";
import { createDeferredWork } from "../../service/deferred-work.ts";
import { createLog } from "../../service/log.ts";
import { childEnvironment } from "../../service/rows/environment.ts";
import { createRows } from "../../service/rows/rows.ts";
import { createStorage, type Storage } from "../../service/storage/storage.ts";
import type { Database } from "../../service/store/database.ts";
import { openStore } from "../../service/store/open.ts";
import type { Session } from "../../service/store/store.ts";

/** Runs all deferred work immediately, like another process of the same database when the work is due. */
export async function doDeferredWork(
  database: Database,
  options: { readonly dropRetentionMs?: number; readonly storage?: Storage } = {},
): Promise<void> {
  await using other = await openOther(database, options);
  await other.run();
}

/** Returns a function like `doDeferredWork` that keeps the process of the rows library until the end of a file. */
export function useDeferredWork(catalog: { readonly database: Database }): () => Promise<void> {
  let other: ReturnType<typeof openOther> | undefined;
  afterAll(async () => (await other)?.[Symbol.asyncDispose]());
  return async () => {
    other ??= openOther(catalog.database);
    await (await other).run();
  };
}

/** Opens a database like another process. */
async function openOther(
  database: Database,
  { dropRetentionMs = 0, storage = createStorage({ s3ForcePathStyle: false }) } = {},
) {
  const store = await openStore(database);
  const log = createLog("silent");
  const finishing = createFinishing({ store, storage, log });
  const child = { memoryBytes: 2 ** 30, environment: childEnvironment(process.env), log };
  const rows = createRows({ store, storage, finishing }, child);
  const times = { dropRetentionMs, auditRetentionMs: Number.MAX_SAFE_INTEGER, automationDelayMs: 0 };
  const parts = { store, storage, finishing, rows, log, isolatedNamespaces: [], ...times };
  return {
    run: async () => {
      const worker = createDeferredWork(parts);
      worker.start();
      // The catalog of the test may claim a task between the two steps of the first round.
      for (let round = 0; round < 2; round += 1) {
        await store.write(makeDue);
        await worker.drain();
      }
      await worker.stop();
      await finishing.settled();
    },
    [Symbol.asyncDispose]: async () => {
      await rows[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

/** Sets the tasks that wait for a retry to be due. A dropped table with a retention period is not one of them. */
async function makeDue({ db }: Session): Promise<void> {
  await db
    .updateTable("tasks")
    .set({ notBefore: 0 })
    .where((eb) => eb.or([eb("kind", "!=", "purge"), eb("attempts", ">", 0)]))
    .execute();
  // The catalog of the test may have claimed tasks that open jobs, and would postpone them.
  await db.updateTable("tasks").set({ claim: null, claimedUntil: 0 }).where("kind", "=", "automate").execute();
}
