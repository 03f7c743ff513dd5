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
import { describeDatabase, isNewSqliteFile } from "./store/database.ts";
import { listGrants } from "./store/grants.ts";
import { openSoonerOrLater } from "./store/late-store.ts";
import { openStore } from "./store/open.ts";
import type { Store } from "./store/store.ts";

/** The dependencies of operations while this process has the catalog open. */
export interface OpenCatalog extends Omit<Catalog, "forgetRoles">, AsyncDisposable {
  /** Starts the work that an earlier run left unfinished and that requests defer. */
  begin(): void;
}

/** The parts that a test can replace. */
export interface Replacements {
  readonly wrapStore?: (store: Store) => Store;
  readonly wrapStorage?: (storage: Storage) => Storage;
}

/** Opens the catalog and migrates its database as soon as the database is available. */
export async function openCatalog(config: Config, log: Log, replacements: Replacements): Promise<OpenCatalog> {
  const { wrapStore = (store) => store, wrapStorage = (storage) => storage } = replacements;
  const open = () => openPrepared(config, log);
  // An unavailable server recovers without intervention, but only the operator can fix an unusable file.
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
  const { dropRetentionMs, auditRetentionMs, automationDelayMs, isolatedNamespaces } = config;
  const worker = createDeferredWork({
    ...commitParts,
    rows,
    log,
    dropRetentionMs,
    auditRetentionMs,
    automationDelayMs,
    isolatedNamespaces,
  });
  return {
    ...commitParts,
    credentials: config.vending && createCredentialVendors(config.vending),
    locations: createLocations(config.warehouse, config.allowedLocations),
    dataOperations: config.dataOperations,
    isolatedNamespaces,
    rayClusters: config.rayClusters,
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

/** The folder of a table that a catalog created, in the format of `Locations.choose`. */
const createdTable = /-[0-9a-f]{12}\.lance\/_versions\//;
/** The maximum number of objects of a warehouse that a start examines. */
const objectsLookedAt = 10_000;

/**
 * Opens the database and migrates its schema. Refuses a new database if the warehouse contains tables of a catalog,
 * whose database is lost, elsewhere, or not moved yet.
 *
 * @param options If `mustExist` is set, never creates a database.
 */
export async function openDatabase(config: Config, options: { readonly mustExist?: boolean } = {}): Promise<Store> {
  const { database, newCatalog } = config;
  if (database.kind === "sqlite") {
    if (!newCatalog && isNewSqliteFile(database.file))
      await requireNewWarehouse(config, "Restore a backup with tiltyard-catalog restore");
    return openStore(database, options);
  }
  const store = await openStore(database, options);
  try {
    if (!newCatalog && (await isUnused(store)))
      await requireNewWarehouse(
        config,
        "Repeat an interrupted tiltyard-catalog move, restore a backup with pg_restore",
      );
    return store;
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

/** Reports whether no principal ever had a role in a catalog. Its first start grants one to each key of the configuration. */
async function isUnused(store: Store): Promise<boolean> {
  return (await listGrants(store.read, [], undefined, { after: undefined, limit: 1 })).length === 0;
}

async function requireNewWarehouse(config: Config, remedy: string): Promise<void> {
  const table = await findCreatedTable(config);
  if (table === undefined) return;
  throw new Error(
    `${describeDatabase(config.database)} has no catalog, but the warehouse ${config.warehouse.uri} has tables of one, such as ${table}. ` +
      `${remedy}, or set TILTYARD_NEW_CATALOG=1 to start an empty catalog.`,
  );
}

async function findCreatedTable(config: Config): Promise<string | undefined> {
  const { path } = config.warehouse;
  let left = objectsLookedAt;
  for await (const { key } of (await openStorage(config).at(config.warehouse)).list(path)) {
    if (createdTable.test(key)) return key.slice(0, key.indexOf("/_versions/"));
    if (--left === 0) return undefined;
  }
  return undefined;
}

/** Opens the database with a current schema and the keys of the configuration. */
async function openPrepared(config: Config, log: Log): Promise<Store> {
  const { auth, dataDir, bootstrapApiKey, runnerApiKey } = config;
  const store = await openDatabase(config);
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
