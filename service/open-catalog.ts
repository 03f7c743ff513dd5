import { installDevelopmentKey, installKey, removeDevelopmentKey } from "./auth/reserved-keys.ts";
import { createFinishing } from "./commits/finish.ts";
import type { Config } from "./config.ts";
import { createDeferredWork } from "./deferred-work.ts";
import { createLocations } from "./domain/locations.ts";
import type { Log } from "./log.ts";
import type { Catalog } from "./operations/handler.ts";
import { createRows } from "./rows/rows.ts";
import { createCredentialVendors } from "./storage/credentials.ts";
import { createStorage, type Storage } from "./storage/storage.ts";
import { openSoonerOrLater } from "./store/late-store.ts";
import { openStore } from "./store/open.ts";
import type { Store } from "./store/store.ts";

/** What operations work with, while this process has it open. */
export interface OpenCatalog extends Omit<Catalog, "forgetRoles">, AsyncDisposable {
  /** Works on what an earlier run left undone, and on what requests defer. */
  begin(): void;
}

/** Parts that a test may put in place of the real ones. */
export interface Replacements {
  readonly wrapStore?: (store: Store) => Store;
  readonly wrapStorage?: (storage: Storage) => Storage;
}

/** Opens the catalog and migrates its database, as soon as it is available. */
export async function openCatalog(config: Config, log: Log, replacements: Replacements): Promise<OpenCatalog> {
  const { wrapStore = (store) => store, wrapStorage = (storage) => storage } = replacements;
  const open = () => openPrepared(config, log);
  // A server comes back by itself; a file that cannot be used is for the operator to fix.
  const opened =
    config.database.kind === "sqlite"
      ? await open()
      : await openSoonerOrLater(open, (reason) =>
          log.warn({ err: reason.cause }, `${reason.message}. Until it can, requests are answered with 503`),
        );
  const store = wrapStore(opened);
  const storage = wrapStorage(openStorage(config));
  const finishing = createFinishing({ store, storage, log });
  const commitParts = { store, storage, finishing };
  const rows = createRows(commitParts, { ...config.rows, log });
  const { dropRetentionMs, auditRetentionMs, automationDelayMs } = config;
  const worker = createDeferredWork({
    ...commitParts,
    rows,
    log,
    dropRetentionMs,
    auditRetentionMs,
    automationDelayMs,
  });
  return {
    ...commitParts,
    credentials: config.vending && createCredentialVendors(config.vending),
    locations: createLocations(config.warehouse, config.allowedLocations),
    dataOperations: config.dataOperations,
    dropRetentionMs,
    worker,
    rows,
    begin: () => worker.start(),
    [Symbol.asyncDispose]: async () => {
      await rows[Symbol.asyncDispose]();
      await worker.stop();
      await finishing.settled();
      await store[Symbol.asyncDispose]();
    },
  };
}

/** Opens the database with its schema up to date and the keys of the settings in it. */
async function openPrepared(
  { database, auth, dataDir, bootstrapApiKey, runnerApiKey }: Config,
  log: Log,
): Promise<Store> {
  const store = await openStore(database);
  try {
    if (auth.mode === "development") await installDevelopmentKey(store, log, dataDir);
    else await removeDevelopmentKey(store);
    if (bootstrapApiKey !== undefined) await installKey(store, log, "bootstrap", bootstrapApiKey);
    if (runnerApiKey !== undefined) await installKey(store, log, "runner", runnerApiKey, "runner");
    return store;
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

export function openStorage({ s3ForcePathStyle, warehouse, allowedLocations }: Config): Storage {
  const fileRoots = [warehouse, ...allowedLocations.map(({ location }) => location)]
    .filter(({ scheme }) => scheme === "file")
    .map(({ path }) => `/${path}`);
  return createStorage({ s3ForcePathStyle, fileRoots });
}
