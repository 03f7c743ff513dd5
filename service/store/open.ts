import type { Database } from "./database.ts";
import type { Store } from "./store.ts";

/**
 * Opens the catalog's database and migrates its schema. Loads only the driver of this database.
 *
 * @param options `mustExist` refuses to create the database.
 * @throws CatalogError ServiceUnavailable; Error for a permanent problem of the database.
 */
export async function openStore(database: Database, options: { readonly mustExist?: boolean } = {}): Promise<Store> {
  if (database.kind === "sqlite") return (await import("./sqlite.ts")).openSqliteStore(database.file, options);
  return (await import("./postgres.ts")).openPostgresStore(database, options);
}
