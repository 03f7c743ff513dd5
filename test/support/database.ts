import { readFileSync } from "node:fs";
import { join } from "node:path";
import SqliteFile from "better-sqlite3";
import { inject } from "vitest";
import { type Database, parseDatabaseUrl } from "../../service/store/database.ts";
import { templateDatabase } from "./postgres-project.ts";
import { createSortedDatabase, runSql } from "./postgres-server.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const postgresUrl = inject("postgresUrl");

/** The database of the tests: SQLite in `npm test`, PostgreSQL in `npm run test:postgres`. */
export const databaseKind: Database["kind"] = postgresUrl === undefined ? "sqlite" : "postgres";

/** A database of a test. */
export interface TestDatabase {
  /** The value of TILTYARD_DATABASE_URL. */
  readonly url: string;
  readonly database: Database;
  drop(): Promise<void>;
}

/** @param content PostgreSQL copies the schema of a catalog faster than the catalog creates it. */
export async function createTestDatabase(content: "empty" | "schema" = "empty"): Promise<TestDatabase> {
  const { url, drop } =
    postgresUrl === undefined ? createSqliteFile() : await createPostgresDatabase(postgresUrl, content);
  return { url, drop, database: parseDatabaseUrl(url, 5) };
}

function createSqliteFile() {
  const folder = temporaryFolder("tiltyard-database-");
  return {
    url: `sqlite:${join(folder, "catalog.sqlite")}`,
    drop: async () => {},
  };
}

async function createPostgresDatabase(server: string, content: "empty" | "schema") {
  const name = `test_${crypto.randomUUID().replaceAll("-", "")}`;
  if (content === "empty") await createSortedDatabase(server, name);
  // Without fsync, a copy of the files is cheaper than one in the log.
  else await runSql(server, `create database ${name} template ${templateDatabase} strategy file_copy`);
  const url = new URL(server);
  url.pathname = name;
  return {
    url: url.href,
    drop: async () => {
      await runSql(server, `drop database if exists ${name} with (force)`);
    },
  };
}

/** Changes a database without the catalog. */
export async function executeSql(database: Database, sql: string): Promise<void> {
  if (database.kind === "postgres") await runSql(database.url, sql);
  else {
    const file = new SqliteFile(database.file);
    file.exec(sql);
    file.close();
  }
}

/** Returns the whole content of a database as text. */
export async function readWhole(database: Database): Promise<string> {
  if (database.kind === "sqlite")
    return [database.file, `${database.file}-wal`].map((file) => readFileSync(file, "latin1")).join("");
  const tables = await runSql(database.url, "select tablename from pg_tables where schemaname = 'public'");
  const found = [];
  for (const { tablename } of tables.rows)
    found.push((await runSql(database.url, `select t::text from "${tablename}" t`)).rows);
  return JSON.stringify(found);
}
