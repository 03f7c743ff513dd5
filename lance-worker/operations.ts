import { CatalogError, ownValue } from "@tiltyard/protocol";
import { readSchema } from "./arrow/arrow-schema.ts";
import type { ByteReader } from "./arrow/message-stream.ts";
import { fixedSizeListTypes } from "./arrow/sql-type.ts";
import { requireNoValues } from "./computed-column.ts";
import { indexOf, requireBits } from "./create-index.ts";
import { readFirstRows } from "./first-rows.ts";
import { rawQueryOf } from "./lancedb.ts";
import { mergeOf, requirePlannable } from "./merge.ts";
import type { OpenForCall, OpenTable } from "./open-table.ts";
import { buildQuery } from "./query.ts";
import { readRecordsOfOthers } from "./records-of-others.ts";
import { runQuery } from "./run-query.ts";
import { type Expression, quotedName } from "./sql-text.ts";
import type { Call, ChangeOperations, NewColumns, ReadOperations, RecordsRequest, RowsQuery } from "./wire.ts";
import { readOneFile, writeRows } from "./write-rows.ts";

type Implementation<Operations extends { readonly [Name in keyof Operations]: (args: never) => Promise<unknown> }> = {
  readonly [Name in keyof Operations]: (
    dataset: OpenTable,
    args: Parameters<Operations[Name]>[0],
    rows: ByteReader,
  ) => ReturnType<Operations[Name]>;
};

const readOperations: Implementation<ReadOperations> = {
  schema: async (dataset) => readSchema(await dataset.schema()),
  lanceSchema: async (dataset) => readSchema(await dataset.schema(), "lance"),
  details: async (dataset) => {
    const versions = await dataset.table.listVersions();
    const summary = versions.find(({ version }) => version === dataset.version)?.metadata ?? {};
    return { summary, schema: readSchema(await dataset.schema()) };
  },
  count: ({ table }, { predicate }) => table.countRows(predicate),
  stats: (dataset) => dataset.stats(),
  indices: async ({ table }) =>
    (await table.listIndices()).map(({ createdAt, indexDetails, ...index }) => ({
      ...index,
      createdAt: createdAt?.toISOString(),
      indexDetails: typeof indexDetails === "object" ? JSON.stringify(indexDetails) : indexDetails,
    })),
  indexStats: async ({ table }, { name }) => (await table.indexStats(name)) ?? null,
  prewarmIndex: ({ table }, { name }) => table.prewarmIndex(name),
  explain: async ({ lancedb, table }, { query, verbose }) =>
    (await buildQuery(lancedb, table, query)).explainPlan(verbose),
  planFilter: ({ table }, { filter }) => table.query().where(filter).limit(1).explainPlan(),
  analyze: async ({ lancedb, table }, query) => (await buildQuery(lancedb, table, query)).analyzePlan(),
  hasLsm: async ({ raw }) => (await raw.getLsmWriteSpec()) !== null,
  firstRows: readFirstRows,
  records: readRecords,
  recordsOfOthers: readRecordsOfOthers,
};

const changeOperations: Implementation<ChangeOperations> = {
  write: (dataset, request, rows) => writeRows(dataset, rows, request),
  merge: async (dataset, request, rows) => {
    const file = await readOneFile(rows);
    requireNoValues(dataset.computed, file);
    requirePlannable(await dataset.schema(), file, request);
    return mergeOf(dataset.raw, request).execute(file);
  },
  update: async (dataset, { where, updates }) => {
    const types = fixedSizeListTypes(await dataset.schema());
    const values = updates.map(([path, value]) => [path, toType(value, types.get(path))] as const);
    return dataset.table.update({ valuesSql: new Map(values), ...(where !== undefined && { where }) });
  },
  delete: ({ table }, { predicate }) => table.delete(predicate),
  createIndex: async (dataset, request) => {
    const { column, name, replace } = request;
    const config = indexOf(dataset.lancedb.Index, request);
    requireBits(request, readSchema(await dataset.schema()));
    await dataset.table.createIndex(column, {
      config,
      ...(name !== undefined && { name }),
      ...(replace !== undefined && { replace }),
    });
  },
  dropIndex: ({ table }, { name }) => table.dropIndex(name),
  addColumns,
  alterColumns: ({ raw }, { alterations }) => raw.alterColumns([...alterations]),
  dropColumns: ({ table }, { columns }) => table.dropColumns([...columns]),
  restore: async ({ table }, { version }) => {
    await table.checkout(version);
    await table.restore();
  },
  createBranch: async ({ table }, { name, from, version }) => {
    const branches = await table.branches();
    (await branches.create(name, from, version)).close();
  },
  updateFieldMetadata: async (dataset, { updates }) => {
    const { version } = await dataset.table.updateFieldMetadata([...updates]);
    return { version, schema: readSchema(await dataset.raw.schema()) };
  },
};

/** Casts a value, because Lance 12 stores null instead of a list of another length or with an item of another type. */
function toType(value: Expression, type: string | undefined): string {
  return type === undefined ? value : `arrow_cast(${value}, '${type}')`;
}

/** The maximum length of the rows of one request as JSON, which the catalog reads as a whole. */
const recordsLengthMax = 4 * 1024 ** 2;

/**
 * Reads rows as JSON, one at a time, for small tables such as Geneva's definitions.
 *
 * @throws CatalogError InvalidInput for rows that are too long.
 */
async function readRecords(
  { table }: OpenTable,
  { columns, filter, limit }: RecordsRequest,
): Promise<Record<string, unknown>[]> {
  const { tableFromIPC } = await import("apache-arrow");
  const query = table.query().limit(limit);
  if (columns !== undefined) query.select([...columns]);
  if (filter !== undefined) query.where(filter);
  const batches = await (await rawQueryOf(query)).execute(1);
  const records: Record<string, unknown>[] = [];
  let length = 0;
  for (let file = await batches.next(); file !== null; file = await batches.next())
    for (const row of tableFromIPC(file)) {
      const text = JSON.stringify(row, (_, value) => (typeof value === "bigint" ? Number(value) : value));
      length += text.length;
      if (length > recordsLengthMax)
        throw new CatalogError("InvalidInput", `the rows have more than ${recordsLengthMax} characters together`);
      records.push(JSON.parse(text));
    }
  return records;
}

/** Adds columns. Several additions are one change: each creates a version, and the catalog publishes all of them at once. */
async function addColumns(dataset: OpenTable, columns: NewColumns, rows: ByteReader) {
  const { computed, computedMetadata: metadata, expressions, hasSchema } = columns;
  const { table, raw } = dataset;
  const additions: (() => Promise<{ readonly version: number }>)[] = [];
  // Computed columns are first, because the library opens the latest version for them again, which must not be a
  // held-back one.
  if (computed.length > 0) additions.push(() => table.addColumns({ computed: [...computed] }));
  if (computed.length > 0 && Object.keys(metadata).length > 0) {
    const updates = computed.map(({ name }) => ({ path: quotedName(name), metadata, replace: false }));
    additions.push(() => table.updateFieldMetadata(updates));
  }
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
  const run = ownValue(operations, operation) as (
    dataset: OpenTable,
    args: unknown,
    rows: ByteReader,
  ) => Promise<unknown>;
  return await run(lease.opened, args, rows);
}

/** Runs a query. @returns The pieces of an Arrow IPC file, which close the table at their end. */
export async function* query(open: OpenForCall, { args, table }: Call): AsyncGenerator<Uint8Array, undefined> {
  using lease = await open(table);
  yield* runQuery(lease.opened, args as RowsQuery);
}
