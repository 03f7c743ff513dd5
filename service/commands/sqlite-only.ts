import { readConfig } from "../config.ts";

/**
 * The file of a catalog whose database is SQLite.
 *
 * @param instead The tool that does the same on PostgreSQL.
 * @throws Error that names it when the database is PostgreSQL.
 */
export function sqliteFile(instead: string): string {
  const { database } = readConfig(process.env);
  if (database.kind === "sqlite") return database.file;
  throw new Error(`the catalog's database is PostgreSQL: use ${instead}; docs/operations/catalog.md shows how`);
}
