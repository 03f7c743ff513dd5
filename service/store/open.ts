import type { Database } from "./database.ts";
import type { Store } from "./store.ts";

/**
 * Opens the database of the catalog and migrates its schema. Loads only the driver of this database.
 *
 * @throws Error if the database is unavailable or unusable.
 */
export async function openStore(database: Database): Promise<Store> {
  if (database.kind === "sqlite") return (await import("./sqlite.ts")).openSqliteStore(database.file);
  return (await import("./postgres.ts")).openPostgresStore(database);
}
