import { createHash } from "node:crypto";
import Database from "better-sqlite3";
import { type Kysely, sql } from "kysely";
import type { PostgresDatabase } from "./database.ts";
import { openPostgres, openPostgresStore } from "./postgres.ts";
import { openSqliteStore } from "./sqlite.ts";
import { closeForGood, verifySqliteFile } from "./sqlite-file.ts";

/** A table with the columns of its primary key, which sort its rows. */
interface Table {
  readonly name: string;
  readonly order: readonly string[];
}

type Row = Readonly<Record<string, unknown>>;
type Rows = Record<string, Record<string, unknown>>;

/** The number of namespaces of a new catalog: the root and the namespace of dropped tables. */
const namespacesOfNewCatalog = 2;
/** The number of rows of one statement. The source of a Function may have a megabyte, and a statement a gigabyte. */
const batchRows = 100;

/**
 * Copies a whole catalog from a SQLite file into an empty PostgreSQL database in one transaction and compares every row
 * before the commit. Migrates both schemas first.
 *
 * @returns The number of copied rows of each table.
 * @throws Error if the file is in use or contains no catalog, if the database is not empty, or if a copied row differs
 * from its original.
 */
export async function moveToPostgres(file: string, database: PostgresDatabase): Promise<Record<string, number>> {
  verifySqliteFile(file);
  closeForGood(file);
  await (await openSqliteStore(file))[Symbol.asyncDispose]();
  await (await openPostgresStore(database))[Symbol.asyncDispose]();
  const target = openPostgres<Rows>(database);
  try {
    return await copyCatalog(file, target);
  } finally {
    await target.destroy();
  }
}

async function copyCatalog(file: string, target: Kysely<Rows>): Promise<Record<string, number>> {
  const source = new Database(file, { fileMustExist: true, timeout: 0 });
  try {
    // No process may change the catalog during the copy. This statement fails while another process uses the file.
    source.exec("begin immediate");
    return await target.transaction().execute(async (transaction) => {
      const tables = tablesOf(source);
      await requireEmpty(transaction, tables);
      const counts: Record<string, number> = {};
      for (const table of tables) counts[table.name] = await copyTable(source, transaction, table);
      await continueTableIds(source, transaction);
      return counts;
    });
  } finally {
    source.close();
  }
}

/** Returns the tables in the order of creation, which satisfies their references. Each needs a primary key. */
function tablesOf(source: Database.Database): readonly Table[] {
  const tables = source.prepare<[], { readonly name: string; readonly key: string }>(`
    select name, (select json_group_array(name order by pk) from pragma_table_info(tables.name) where pk > 0) as key
    from sqlite_schema tables
    where type = 'table' and name not like 'kysely%' and name not like 'sqlite%' order by rowid`);
  return tables.all().map(({ name, key }) => ({ name, order: JSON.parse(key) }));
}

/** Locks the database and requires a new catalog, which contains nothing but two namespaces. */
async function requireEmpty(target: Kysely<Rows>, tables: readonly Table[]): Promise<void> {
  await sql`lock table ${sql.join(tables.map(({ name }) => sql.table(name)))} in access exclusive mode`.execute(target);
  const filled: string[] = [];
  for (const { name } of tables) {
    const rowsMax = name === "namespaces" ? namespacesOfNewCatalog : 0;
    const { rows } = await sql`select 1 from ${sql.table(name)} limit ${rowsMax + 1}`.execute(target);
    if (rows.length > rowsMax) filled.push(name);
  }
  if (filled.length > 0)
    throw new Error(
      `the database that TILTYARD_DATABASE_URL names is not empty. It contains ${filled.join(", ")}: ` +
        "create a new database and move there. A service that was started with it has already created keys and grants",
    );
  // The copy contains the two namespaces.
  await target.deleteFrom("namespaces").execute();
}

async function copyTable(source: Database.Database, target: Kysely<Rows>, { name, order }: Table): Promise<number> {
  const digestOfSource = createDigest();
  let count = 0;
  let batch: Row[] = [];
  const insert = async () => {
    if (batch.length > 0) await target.insertInto(name).values(batch).execute();
    count += batch.length;
    batch = [];
  };
  for (const row of source.prepare<[], Row>(`select * from ${name} order by ${order.join(", ")}`).iterate()) {
    digestOfSource.add(row);
    batch.push(row);
    if (batch.length === batchRows) await insert();
  }
  await insert();

  const digestOfTarget = createDigest();
  const columns = order.map((column) => sql.ref(column));
  await sql`declare copied cursor for select * from ${sql.table(name)} order by ${sql.join(columns)}`.execute(target);
  for (;;) {
    const { rows } = await sql<Row>`fetch forward ${sql.lit(batchRows)} from copied`.execute(target);
    for (const row of rows) digestOfTarget.add(row);
    if (rows.length < batchRows) break;
  }
  await sql`close copied`.execute(target);
  if (digestOfTarget.value() !== digestOfSource.value())
    throw new Error(`the rows of ${name} differ between the target and ${source.name}. Nothing was moved`);
  return count;
}

/** Continues the sequence of table ids: the id of a dropped table is never reused. */
async function continueTableIds(source: Database.Database, target: Kysely<Rows>): Promise<void> {
  const highest = source.prepare<[], { seq: number }>("select seq from sqlite_sequence where name = 'tables'").get();
  if (highest === undefined || highest.seq < 1) return;
  await sql`select setval(pg_get_serial_sequence('tables', 'id'), ${highest.seq})`.execute(target);
}

/** Creates a digest that is equal for equal lists of rows, whatever the order of their columns. */
function createDigest() {
  const hash = createHash("sha256");
  return {
    add: (row: Row) => {
      const cells = Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1));
      hash.update(`${JSON.stringify(cells)}\n`);
    },
    value: () => hash.digest("hex"),
  };
}
