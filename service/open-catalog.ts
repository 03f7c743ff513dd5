import { hasKind } from "@tiltyard/protocol";
import { installDevelopmentKey, installKey } from "./auth/reserved-keys.ts";
import { createFinishing } from "./commits/finish.ts";
import type { Config } from "./config.ts";
import { createDeferredWork } from "./deferred-work.ts";
import { readSecretKeys, reencryptSecrets, type SecretKeys } from "./functions/secret-keys.ts";
import type { Log } from "./log.ts";
import type { Catalog } from "./operations/handler.ts";
import { createRows } from "./rows/rows.ts";
import { createCredentialVendors } from "./storage/credentials.ts";
import { createStorage, type Storage } from "./storage/storage.ts";
import { deleteApiKey } from "./store/api-keys.ts";
import { cannotUse, describeDatabase, isNewSqliteFile } from "./store/database.ts";
import { listGrants } from "./store/grants.ts";
import { openStore } from "./store/open.ts";
import type { Store } from "./store/store.ts";
import { createLocations } from "./tables/locations.ts";

export interface OpenCatalog extends Catalog, AsyncDisposable {
  /** Starts the work that an earlier run left unfinished and that requests defer. */
  begin(): void;
}

/** The deps that a test can replace. */
export interface Replacements {
  readonly wrapStore?: (store: Store) => Store;
  readonly wrapStorage?: (storage: Storage) => Storage;
}

/** Opens the catalog and migrates its database. @throws Error if the database is unavailable. */
export async function openCatalog(config: Config, log: Log, replacements: Replacements): Promise<OpenCatalog> {
  const { wrapStore = (store) => store, wrapStorage = (storage) => storage } = replacements;
  const secretKeys = config.secretsKeyFile === undefined ? new Map() : readSecretKeys(config.secretsKeyFile);
  const store = wrapStore(await openPrepared(config, secretKeys, log));
  const storage = wrapStorage(openStorage(config));
  const finishing = createFinishing({ store, storage, log });
  const commitDeps = { store, storage, finishing };
  const rows = createRows(commitDeps, { ...config.rows, log });
  const worker = createDeferredWork({ ...config, ...commitDeps, rows, log });
  // Handlers receive only the settings that they need, without keys or the address of the database.
  return {
    ...commitDeps,
    credentials: config.vending && createCredentialVendors(config.vending),
    locations: createLocations(config.warehouse, config.allowedLocations),
    dataOperations: config.dataOperations,
    secretKeys,
    isolatedNamespaces: config.isolatedNamespaces,
    openJobMaxima: config.openJobMaxima,
    rayClusters: config.rayClusters,
    autoRefresh: config.autoRefresh,
    dropRetentionMs: config.dropRetentionMs,
    stalledAfterMs: config.stalledAfterMs,
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

/** Refuses a new database if the warehouse has tables of a catalog, whose database may be lost or elsewhere. */
async function requireKnownDatabase(config: Config, isNew: boolean, remedy: string): Promise<void> {
  if (config.newCatalog || !isNew) return;
  const table = await findCreatedTable(config);
  if (table === undefined) return;
  throw new Error(
    `${describeDatabase(config.database)} has no catalog, but the warehouse ${config.warehouse.uri} has tables of one, such as ${table}. ` +
      `${remedy}, or set TILTYARD_NEW_CATALOG=1 to start an empty catalog.`,
  );
}

/** Reports whether no principal ever had a role in a catalog. Its first start grants one to each key of the configuration. */
async function isUnused(store: Store): Promise<boolean> {
  return (await listGrants(store.read, [], undefined, { limit: 1 })).length === 0;
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
async function openPrepared(config: Config, secretKeys: SecretKeys, log: Log): Promise<Store> {
  const { auth, bootstrapApiKey, database, dataDir, runnerApiKey } = config;
  if (database.kind === "sqlite")
    await requireKnownDatabase(
      config,
      isNewSqliteFile(database.file),
      "Restore a backup with tiltyard-catalog restore",
    );
  const store = await openStore(database);
  try {
    if (database.kind === "postgres")
      await requireKnownDatabase(
        config,
        await isUnused(store),
        "Repeat an interrupted tiltyard-catalog move, restore a backup with pg_restore",
      );
    if (auth.mode === "development") await installDevelopmentKey(store, log, dataDir);
    // The database may have been used with development authentication before.
    else await store.write((session) => deleteApiKey(session, "development"));
    if (bootstrapApiKey !== undefined) await installKey(store, log, "bootstrap", bootstrapApiKey);
    if (runnerApiKey !== undefined) await installKey(store, log, "runner", runnerApiKey, "runner");
    const { count, problems } = await reencryptSecrets(store, secretKeys);
    for (const problem of problems) log.warn(problem);
    if (count > 0) log.info({ secrets: count - problems.length }, "the secrets of earlier keys have the first key now");
    return store;
  } catch (error) {
    await store[Symbol.asyncDispose]();
    // Requests do not see the cause of an unavailable database, but an operator needs it.
    const isUnavailable = hasKind(error, "ServiceUnavailable") && error.cause !== undefined;
    throw isUnavailable ? cannotUse(describeDatabase(database), error.cause) : error;
  }
}

export function openStorage({ s3ForcePathStyle, warehouse, allowedLocations }: Config): Storage {
  const fileRoots = [warehouse, ...allowedLocations.map(({ location }) => location)]
    .filter(({ scheme }) => scheme === "file")
    .map(({ path }) => `/${path}`);
  return createStorage({ s3ForcePathStyle, fileRoots });
}
