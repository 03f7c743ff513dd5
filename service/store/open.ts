import type { Database } from "./database.ts";
import type { Store } from "./store.ts";

/** Opens and migrates the database with its driver only. @throws Error if it is unavailable or unusable. */
export async function openStore(database: Database): Promise<Store> {
  if (database.kind === "sqlite") return (await import("./sqlite.ts")).openSqliteStore(database.file);
  return (await import("./postgres.ts")).openPostgresStore(database);
}
