import type { Database } from "./database.ts";
import type { Store } from "./store.ts";

/**
 * Opens the database of the catalog and migrates its schema. Loads only the driver of this database.
 *
 * @param options If `mustExist` is set, refuses to create the database.
 * @throws CatalogError ServiceUnavailable for a transient problem of the database; Error for a permanent one.
 */
export async function openStore(database: Database, options: { readonly mustExist?: boolean } = {}): Promise<Store> {
  if (database.kind === "sqlite") return (await import("./sqlite.ts")).openSqliteStore(database.file, options);
  return (await import("./postgres.ts")).openPostgresStore(database, options);
}
