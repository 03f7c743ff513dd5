import type { Database } from "./database.ts";
import type { Store } from "./store.ts";

/**
 * Opens the catalog's database and migrates its schema. Loads only the driver of this database.
 *
 * @throws CatalogError ServiceUnavailable; Error for a permanent problem of the database.
 */
export async function openStore(database: Database): Promise<Store> {
  if (database.kind === "sqlite") return (await import("./sqlite.ts")).openSqliteStore(database.file, database);
  return (await import("./postgres.ts")).openPostgresStore(database);
}
