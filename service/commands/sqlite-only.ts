import { readConfig } from "../config.ts";

/**
 * Returns the file of a catalog with SQLite.
 *
 * @param instead The equivalent tool for PostgreSQL.
 * @throws Error with the name of that tool if the database is PostgreSQL.
 */
export function sqliteFile(instead: string): string {
  const { database } = readConfig(process.env);
  if (database.kind === "sqlite") return database.file;
  throw new Error(`the catalog's database is PostgreSQL: use ${instead}; docs/operations/catalog.md shows how`);
}
