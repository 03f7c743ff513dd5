import { readFileSync } from "node:fs";
import { join } from "node:path";
import SqliteFile from "better-sqlite3";
import { inject } from "vitest";
import { type Database, parseDatabaseUrl } from "../../service/store/database.ts";
import { runSql } from "./postgres-server.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const postgresUrl = inject("postgresUrl");

/** The database of the tests: SQLite in `npm test`, PostgreSQL in `npm run test:postgres`. */
export const databaseKind: Database["kind"] = postgresUrl === undefined ? "sqlite" : "postgres";

/** An empty database. */
export interface TestDatabase {
  /** The value of TILTYARD_DATABASE_URL. */
  readonly url: string;
  readonly database: Database;
  drop(): Promise<void>;
}

export async function createTestDatabase(): Promise<TestDatabase> {
  const { url, drop } = postgresUrl === undefined ? createSqliteFile() : await createPostgresDatabase(postgresUrl);
  return { url, drop, database: parseDatabaseUrl(url, 5) };
}

function createSqliteFile() {
  const folder = temporaryFolder("tiltyard-database-");
  return {
    url: `sqlite:${join(folder, "catalog.sqlite")}`,
    drop: async () => {},
  };
}

async function createPostgresDatabase(server: string) {
  const name = `test_${crypto.randomUUID().replaceAll("-", "")}`;
  // Most databases sort text by a language, so this one does too.
  await runSql(server, `create database ${name} template template0 locale_provider icu icu_locale 'en-US'`);
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
