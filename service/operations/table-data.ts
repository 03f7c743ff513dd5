import { type QueryRequest, type RowsQuery, toExpression } from "@tiltyard/lance-worker";
import { CatalogError, type contracts, formatIdentifier, mainBranch, type RequestOf } from "@tiltyard/protocol";
import { type BranchRequest, isWritten } from "../commits/read.ts";
import type { BranchChange } from "../commits/series.ts";
import { policyIn } from "../domain/policy.ts";
import { branchOf, requireFreeName, requireTable } from "../domain/require.ts";
import type { ChangeOptions } from "../rows/change.ts";
import { findTable, type TableRecord, withProtectionOf } from "../store/tables.ts";
import { exclusively } from "../tasks/lease.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";

/** Creates a table with its rows, or the first version of a declared one. Overwriting creates a version. */
export const createTable: Handler<"createTable"> = async (request, catalog, caller) => {
  // Java's client sends an empty map if no options are set.
  if (Object.keys(request.storage_options ?? {}).length > 0)
    throw new CatalogError("Unsupported", "storage_options: must be absent: this catalog writes with its own options");
  // An invalid policy must be rejected before rows are written.
  policyIn(request.properties ?? {});
  return inTurn(catalog, request, () => create(request, catalog, caller));
};

async function create(request: RequestOf<typeof contracts.createTable>, catalog: Catalog, caller: AuthorizedCaller) {
  const { id, mode = "Create", properties } = request;
  const change = { request, caller, properties };
  const present = await findTable(catalog.store.read, id);
  if (present === undefined) {
    const { transaction, ...made } = await createTableWithRows(catalog, change, caller.body);
    return { ...transaction, ...made, properties: properties ?? {} };
  }
  const isEmpty = await isUnwritten(catalog, present, request);
  if (!isEmpty && mode === "Create")
    throw new CatalogError("TableAlreadyExists", `table ${formatIdentifier(id)} already exists`);
  if (!isEmpty && mode === "ExistOk") return { location: present.location.uri, properties: present.properties };
  const sent = { rows: caller.body, empty: isEmpty ? present : undefined };
  const { result, transaction } = await catalog.rows.change("write", change, { mode: "overwrite" }, sent);
  return {
    ...transaction,
    location: present.location.uri,
    version: result.version,
    properties: withProtectionOf(present, properties ?? present.properties),
  };
}

/**
 * Creates a table from an Arrow stream at a location that the catalog chooses. The table and its rows are one commit.
 *
 * @param change The change, whose properties become those of the table.
 * @throws CatalogError NamespaceNotFound, TableAlreadyExists, Unsupported; also like a write.
 */
export async function createTableWithRows(
  catalog: Catalog,
  change: BranchChange,
  rows: ReadableStream<Uint8Array>,
  { stableRowIds = false }: Pick<ChangeOptions, "stableRowIds"> = {},
) {
  const { id } = change.request;
  await requireFreeName(catalog.store.read, id);
  const location = catalog.locations.choose(id);
  const empty = { location, properties: change.properties ?? {} };
  // No other client knows this location.
  const onNothingCommitted = async () => (await catalog.storage.at(location)).deleteFolder(location.path);
  const options = { rows, empty, stableRowIds, onNothingCommitted };
  const { result, transaction } = await catalog.rows.change("write", change, { mode: "append" }, options);
  return { location: location.uri, version: result.version, transaction };
}

export const insertIntoTable: Handler<"insertIntoTable"> = async (request, catalog, caller) => {
  const change = { request, caller };
  const mode = request.mode === "Overwrite" ? "overwrite" : "append";
  const { result, transaction } = await inTurn(catalog, request, async () => {
    const table = await requireTable(catalog.store.read, request.id);
    const empty = (await isUnwritten(catalog, table, request)) ? table : undefined;
    return catalog.rows.change("write", change, { mode }, { rows: caller.body, empty });
  });
  return { ...transaction, num_inserted_rows: result.rows, version: result.version };
};

export const mergeInsertIntoTable: Handler<"mergeInsertIntoTable"> = async (request, catalog, caller) => {
  const { num_attempts: _, num_rows: __, ...answer } = await mergeRows(request, catalog, caller);
  return answer;
};

type MergeRequest = RequestOf<typeof contracts.mergeInsertIntoTable>;

/** Merges rows. The response also contains the number of written rows and of attempts. */
export async function mergeRows(request: MergeRequest, catalog: Catalog, caller: AuthorizedCaller) {
  return inTurn(catalog, request, () => merge(request, catalog, caller));
}

async function merge(request: MergeRequest, catalog: Catalog, caller: AuthorizedCaller) {
  const { store, rows } = catalog;
  const change = { request, caller };
  const sent = { rows: caller.body };
  const table = await requireTable(store.read, request.id);
  if (await isUnwritten(catalog, table, request)) {
    const first = { mode: "append", on: request.on } as const;
    const { result, transaction } = await rows.change("write", change, first, { ...sent, empty: table });
    const none = { num_updated_rows: 0, num_deleted_rows: 0, num_attempts: 1 };
    return { ...transaction, ...none, num_inserted_rows: result.rows, num_rows: result.rows, version: result.version };
  }
  const args = {
    ...request,
    when_matched_update_all_filt: toExpression(request.when_matched_update_all_filt),
    when_not_matched_by_source_delete_filt: toExpression(request.when_not_matched_by_source_delete_filt),
  };
  const { result: merged, transaction } = await rows.change("merge", change, args, sent);
  return {
    ...transaction,
    num_updated_rows: merged.numUpdatedRows,
    num_inserted_rows: merged.numInsertedRows,
    num_deleted_rows: merged.numDeletedRows,
    version: merged.version,
    num_attempts: merged.numAttempts,
    num_rows: merged.numRows,
  };
}

/** Reports whether a write creates the first version of a table. */
async function isUnwritten(catalog: Catalog, table: TableRecord, request: BranchRequest): Promise<boolean> {
  return branchOf(request) === mainBranch && !(await isWritten(catalog, { table, branch: mainBranch }));
}

/**
 * Serializes writes that create the table or its first version across all replicas. A stream of rows cannot be
 * repeated, so the library must not lose the race for that version. The next write finds it.
 *
 * @throws CatalogError ServiceUnavailable if other writes last too long.
 */
async function inTurn<Result>(catalog: Catalog, request: BranchRequest, write: () => Promise<Result>): Promise<Result> {
  const table = await findTable(catalog.store.read, request.id);
  if (table !== undefined && !(await isUnwritten(catalog, table, request))) return write();
  return exclusively(catalog.store, `first version of ${JSON.stringify(request.id)}`, write);
}

export const updateTable: Handler<"updateTable"> = async (request, { rows }, caller) => {
  const where = toExpression(request.predicate);
  const updates = request.updates.map(([path = "", value = ""]) => [path, toExpression(value)] as const);
  const { result, table, transaction } = await rows.change("update", { request, caller }, { where, updates });
  const { rowsUpdated, version } = result;
  return { ...transaction, updated_rows: rowsUpdated, version, properties: table.properties };
};

export const deleteFromTable: Handler<"deleteFromTable"> = async (request, catalog, caller) => {
  const { num_deleted_rows: _, ...answer } = await deleteRows(request, catalog, caller);
  return answer;
};

export async function deleteRows(
  request: RequestOf<typeof contracts.deleteFromTable>,
  { rows }: Catalog,
  caller: AuthorizedCaller,
) {
  const predicate = toExpression(request.predicate);
  const { result, transaction } = await rows.change("delete", { request, caller }, { predicate });
  return { ...transaction, version: result.version, num_deleted_rows: result.numDeletedRows };
}

function toRowsQuery({ filter, columns, ...same }: QueryRequest): RowsQuery {
  const { column_names, column_aliases: aliases } = columns ?? {};
  const converted = Object.entries(aliases ?? {}).map(([name, sql]) => [name, toExpression(sql)] as const);
  const column_aliases = aliases && Object.fromEntries(converted);
  return { ...same, filter: toExpression(filter), columns: { column_names, column_aliases } };
}

export const queryTable: Handler<"queryTable"> = async (request, { rows }, caller) =>
  rows.query({ ...request, caller }, toRowsQuery(request));

export const countTableRows: Handler<"countTableRows"> = async (request, { rows }, caller) =>
  (await rows.read("count", { ...request, caller }, { predicate: toExpression(request.predicate) })).result;

export const explainTableQueryPlan: Handler<"explainTableQueryPlan"> = async (request, { rows }, caller) => {
  const { query, branch = query.branch, verbose = false } = request;
  const at = { id: request.id, branch, version: query.version, caller };
  return (await rows.read("explain", at, { query: toRowsQuery(query), verbose })).result;
};

export const analyzeTableQueryPlan: Handler<"analyzeTableQueryPlan"> = async (request, { rows }, caller) =>
  (await rows.read("analyze", { ...request, caller }, toRowsQuery(request))).result;
