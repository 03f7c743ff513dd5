import { createHash } from "node:crypto";
import Database from "better-sqlite3";
import { type Kysely, sql } from "kysely";
import type { PostgresDatabase } from "./database.ts";
import { openPostgresStore } from "./postgres.ts";
import { openPostgres } from "./postgres-pool.ts";
import { toColumn } from "./records.ts";
import type { Schema } from "./schema.ts";
import { openSqliteStore } from "./sqlite.ts";
import { closeForGood, verifySqliteFile } from "./sqlite-file.ts";

const sortColumns = {
  namespaces: ["path"],
  tables: ["id"],
  tableColumns: ["tableId"],
  branches: ["tableId", "name"],
  tableVersions: ["tableId", "branch", "generation", "version"],
  auditRecords: ["id"],
  auditOutcomes: ["recordId"],
  auditRetention: ["deletedBefore"],
  jobs: ["id"],
  jobAttempts: ["jobId", "number"],
  automations: ["tableId", "kind", "target"],
  apiKeys: ["id"],
  accessTokens: ["hash"],
  reservedLocations: ["location"],
  grants: ["principal", "namespace"],
  tasks: ["kind", "subject"],
  leases: ["name"],
  clock: ["id"],
} as const satisfies { readonly [Table in keyof Schema]: readonly (keyof Schema[Table] & string)[] };

/** All tables of a catalog with their sort columns, in an order that satisfies their references. */
const tables = Object.entries(sortColumns).map(([table, columns]) => ({
  name: toColumn(table),
  order: columns.map(toColumn),
}));

type Table = (typeof tables)[number];
type Row = Readonly<Record<string, unknown>>;
type Rows = Record<string, Record<string, unknown>>;

/** The number of namespaces of a new catalog: the root and the namespace of dropped tables. */
const namespacesOfNewCatalog = 2;
/** The number of rows of one statement. PostgreSQL allows 65,535 values. */
const batchRows = 1_000;

/** The number of copied rows of each table. */
export type RowCounts = Readonly<Record<string, number>>;

/**
 * Copies a whole catalog from a SQLite file into an empty PostgreSQL database in one transaction and compares every row
 * before the commit. Migrates both schemas first.
 *
 * @throws Error if the file is in use or contains no catalog, if the database is not empty, or if a copied row differs
 * from its original.
 */
export async function moveToPostgres(file: string, database: PostgresDatabase): Promise<RowCounts> {
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

async function copyCatalog(file: string, target: Kysely<Rows>): Promise<RowCounts> {
  const source = new Database(file, { fileMustExist: true, timeout: 0 });
  try {
    // No process may change the catalog during the copy. This statement fails while another process uses the file.
    source.exec("begin immediate");
    return await target.transaction().execute(async (transaction) => {
      await requireEmpty(transaction);
      const counts: Record<string, number> = {};
      for (const table of tables) counts[table.name] = await copyTable(source, transaction, table);
      await continueTableIds(source, transaction);
      return counts;
    });
  } finally {
    source.close();
  }
}

/** Locks the database and requires a new catalog, which contains nothing but two namespaces. */
async function requireEmpty(target: Kysely<Rows>): Promise<void> {
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
