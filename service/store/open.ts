import type { Database } from "./database.ts";
import type { Store } from "./store.ts";

/**
 * Opens the catalog's database and brings its schema up to date. The driver is loaded now,
 * and only the one that is needed.
 *
 * @throws CatalogError ServiceUnavailable, or an Error that says what is wrong with the database.
 */
export async function openStore(database: Database): Promise<Store> {
  if (database.kind === "sqlite") return (await import("./sqlite.ts")).openSqliteStore(database.file, database);
  return (await import("./postgres.ts")).openPostgresStore(database);
}
