import type { Table } from "@lancedb/lancedb";
import { readSchema } from "../arrow/arrow-schema.ts";
import type { ByteReader } from "../arrow/message-stream.ts";
import type { Call } from "../call.ts";
import type { RowsQuery } from "../rows-query.ts";
import type { Expression } from "../sql-text.ts";
import { type IndexRequest, indexOf, requireBits } from "./create-index.ts";
import { readFirstRows } from "./first-rows.ts";
import { type MergeRequest, mergeOf } from "./merge.ts";
import type { OpenForCall, OpenTable } from "./open-table.ts";
import { buildQuery } from "./query.ts";
import { readRecords } from "./records.ts";
import { readRecordsOfOthers } from "./records-of-others.ts";
import { runQuery } from "./run-query.ts";
import { readOneFile, writeRows } from "./write-rows.ts";

/** The operations that read one version. They are idempotent. */
const readOperations = {
  schema: async (dataset: OpenTable, _: object) => readSchema(await dataset.schema()),
  lanceSchema: async (dataset: OpenTable, _: object) => readSchema(await dataset.schema(), "lance"),
  details: async (dataset: OpenTable, _: object) => {
    const versions = await dataset.table.listVersions();
    const summary = versions.find(({ version }) => version === dataset.version)?.metadata ?? {};
    return { summary, schema: readSchema(await dataset.schema()) };
  },
  count: ({ table }: OpenTable, { predicate }: { readonly predicate: Expression | undefined }) =>
    table.countRows(predicate),
  stats: ({ table }: OpenTable, _: object) => table.stats(),
  indices: async ({ table }: OpenTable, _: object) =>
    (await table.listIndices()).map(({ createdAt, indexDetails, ...index }) => ({
      ...index,
      createdAt: createdAt?.toISOString(),
      indexDetails: typeof indexDetails === "object" ? JSON.stringify(indexDetails) : indexDetails,
    })),
  indexStats: async ({ table }: OpenTable, { name }: { readonly name: string }) =>
    (await table.indexStats(name)) ?? null,
  prewarmIndex: ({ table }: OpenTable, { name }: { readonly name: string }) => table.prewarmIndex(name),
  explain: async (dataset: OpenTable, { query, verbose }: { readonly query: RowsQuery; readonly verbose: boolean }) =>
    (await buildQuery(dataset.lancedb, dataset.table, query)).explainPlan(verbose),
  planFilter: ({ table }: OpenTable, { filter }: { readonly filter: Expression }) =>
    table.query().where(filter).limit(1).explainPlan(),
  analyze: async (dataset: OpenTable, query: RowsQuery) =>
    (await buildQuery(dataset.lancedb, dataset.table, query)).analyzePlan(),
  hasLsm: async (dataset: OpenTable, _: object) => (await dataset.raw.getLsmWriteSpec()) !== null,
  firstRows: readFirstRows,
  records: readRecords,
  recordsOfOthers: readRecordsOfOthers,
};
export type ReadOperations = typeof readOperations;

/** The operations that commit versions. */
const changeOperations = {
  write: (dataset: OpenTable, { mode }: { readonly mode: "append" | "overwrite" }, rows: ByteReader) =>
    writeRows(dataset, rows, mode),
  merge: async (dataset: OpenTable, request: MergeRequest, rows: ByteReader) => {
    const file = await readOneFile(rows);
    return mergeOf(dataset.raw, request).execute(file);
  },
  update: ({ table }: OpenTable, { where, updates }: Update) =>
    table.update({ valuesSql: new Map(updates), ...(where !== undefined && { where }) }),
  delete: ({ table }: OpenTable, { predicate }: { readonly predicate: Expression }) => table.delete(predicate),
  createIndex: async (dataset: OpenTable, request: IndexRequest) => {
    const { column, name, replace } = request;
    const config = indexOf(dataset.lancedb.Index, request);
    requireBits(request, readSchema(await dataset.schema()));
    await dataset.table.createIndex(column, {
      config,
      ...(name !== undefined && { name }),
      ...(replace !== undefined && { replace }),
    });
  },
  dropIndex: ({ table }: OpenTable, { name }: { readonly name: string }) => table.dropIndex(name),
  addColumns: (dataset: OpenTable, columns: NewColumns, rows: ByteReader) => addColumns(dataset, columns, rows),
  alterColumns: async ({ raw }: OpenTable, { alterations }: { readonly alterations: Alterations }) =>
    raw.alterColumns(alterations),
  dropColumns: ({ table }: OpenTable, { columns }: { readonly columns: string[] }) => table.dropColumns(columns),
  restore: async ({ table }: OpenTable, { version }: { readonly version: number }) => {
    await table.checkout(version);
    await table.restore();
  },
  createBranch: async ({ table }: OpenTable, { name, from, version }: NewBranch) => {
    const branches = await table.branches();
    (await branches.create(name, from, version)).close();
  },
  updateFieldMetadata: async (dataset: OpenTable, { updates }: { readonly updates: FieldMetadata }) => {
    const { version } = await dataset.table.updateFieldMetadata(updates);
    return { version, schema: readSchema(await dataset.raw.schema()) };
  },
};
export type ChangeOperations = typeof changeOperations;

interface Update {
  readonly where: Expression | undefined;
  /** The paths of fields with their new values. */
  readonly updates: readonly (readonly [path: string, value: Expression])[];
}
interface NewBranch {
  readonly name: string;
  readonly from: string;
  readonly version: number;
}
type FieldMetadata = Parameters<Table["updateFieldMetadata"]>[0];
type Alterations = Parameters<OpenTable["raw"]["alterColumns"]>[0];
interface NewColumns {
  readonly computed: readonly SqlColumn[];
  readonly expressions: readonly SqlColumn[];
  /** Reports whether the rows are a schema whose columns are added without values. */
  readonly hasSchema: boolean;
}
interface SqlColumn {
  readonly name: string;
  readonly valueSql: Expression;
}

/** Adds columns. Several additions are one change: each creates a version, and the catalog publishes all of them at once. */
async function addColumns(dataset: OpenTable, { computed, expressions, hasSchema }: NewColumns, rows: ByteReader) {
  const { table, raw } = dataset;
  const additions: (() => Promise<{ readonly version: number }>)[] = [];
  // Computed columns are first, because the library opens the latest version for them again, which must not be a
  // held-back one.
  if (computed.length > 0) additions.push(() => table.addColumns({ computed: [...computed] }));
  if (expressions.length > 0) additions.push(() => table.addColumns([...expressions]));
  if (hasSchema) {
    const schema = await readOneFile(rows);
    additions.push(() => raw.addColumnsWithSchema(schema));
  }
  if (additions.length > 1) await dataset.hold();
  let { version } = dataset;
  for (const add of additions) ({ version } = await add());
  return { version };
}

/** Executes a call whose result is JSON. */
export async function execute(open: OpenForCall, { operation, args, table }: Call, rows: ByteReader): Promise<unknown> {
  using lease = await open(table);
  // The catalog calls each operation by its name and with its arguments, which its own types check.
  const operations: Readonly<Record<string, unknown>> = { ...readOperations, ...changeOperations };
  const run = operations[operation] as (dataset: OpenTable, args: unknown, rows: ByteReader) => Promise<unknown>;
  return await run(lease.opened, args, rows);
}

/** Runs a query. @returns The pieces of an Arrow IPC file, which close the table at their end. */
export async function* query(open: OpenForCall, { args, table }: Call): AsyncGenerator<Uint8Array, undefined> {
  using lease = await open(table);
  const { opened } = lease;
  yield* runQuery(opened, () => buildQuery(opened.lancedb, opened.table, args as RowsQuery));
}
