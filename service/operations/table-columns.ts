import { isDeepStrictEqual } from "node:util";
import { findField, type NewColumns, toExpression, toLanceType } from "@tiltyard/lance-worker";
import {
  CatalogError,
  contracts,
  type FunctionColumns,
  type Identifier,
  type RequestOf,
  type remoteContracts,
} from "@tiltyard/protocol";
import { refreshIntervalOf } from "../automation/auto-refresh.ts";
import { prepareForNewRows } from "../automation/table-state.ts";
import { openBranch } from "../commits/read.ts";
import { automationOf } from "../domain/policy.ts";
import { requireMain } from "../domain/require.ts";
import { bindFunction } from "../functions/binding.ts";
import { requireRefreshable } from "../functions/refresh.ts";
import { checkBackfill } from "../geneva/backfill.ts";
import { ensureSystemNamespace, resolveNames } from "../geneva/definitions.ts";
import { manifestOfColumn, replaceFunction, storeFunctions } from "../geneva/virtual-column.ts";
import { requireNameable, requireRoom } from "../jobs/job.ts";
import { openTableJob, requireNoOpenColumnJob } from "../jobs/open-job.ts";
import { commitSchemaMetadata } from "../rows/schema-metadata.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { noteTask } from "../store/tasks.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";

type NewColumn = RequestOf<typeof contracts.alterTableAddColumns>["new_columns"][number];

/** Adds columns. A job fills computed columns and function columns; expressions are evaluated at once. */
export const alterTableAddColumns: Handler<"alterTableAddColumns"> = (request, catalog, caller) =>
  addColumns(request, {}, catalog, caller);

/** @param refresh The metadata of the computed columns that determines their automatic refreshes. */
export async function addColumns(
  request: RequestOf<typeof contracts.alterTableAddColumns>,
  refresh: Readonly<Record<string, string>>,
  catalog: Catalog,
  caller: AuthorizedCaller,
) {
  request.new_columns.forEach(requireOneDefinition);
  const expressions = sqlOf(request.new_columns, "expression");
  const computed = sqlOf(request.new_columns, "computed");
  const ofFunctions = request.new_columns.flatMap(({ virtual_column }) => virtual_column ?? []);
  let schema: ReadableStream<Uint8Array> | undefined;
  if (ofFunctions.length > 0) {
    await ensureSystemNamespace(catalog, caller, request.id);
    schema = await storeFunctions(catalog, { ...request, caller }, ofFunctions);
  }
  // All outputs of a function are filled together.
  const automatic = [
    ...ofFunctions.flatMap(({ auto_backfill, outputs: [first] }) => (auto_backfill && first?.column) || []),
    ...(refreshIntervalOf(refresh) === undefined ? [] : computed.map(({ name }) => name)),
  ];
  const alongside = await prepareAutomatic(request.id, automatic, catalog, caller);
  const change = { request, caller, alongside };
  return commitColumns(catalog, change, { computed, computedMetadata: refresh, expressions }, schema);
}

/** Commits new columns as one change. @param schema An Arrow stream with columns that start without values. */
export async function commitColumns(
  { rows }: Catalog,
  change: Parameters<Catalog["rows"]["change"]>[1],
  columns: Partial<NewColumns>,
  schema?: ReadableStream<Uint8Array>,
) {
  const added = { computed: [], computedMetadata: {}, expressions: [], ...columns, hasSchema: schema !== undefined };
  const options = schema === undefined ? {} : { rows: schema };
  const { result, transaction } = await rows.change("addColumns", change, added, options);
  return { ...transaction, version: result.version };
}

/** Returns a function that registers the automations of columns in the database transaction of their version. */
async function prepareAutomatic(
  id: Identifier,
  columns: readonly string[],
  catalog: Catalog,
  caller: AuthorizedCaller,
): Promise<(session: Session) => Promise<void>> {
  const register = columns.length > 0 ? await prepareForNewRows(catalog, id, caller) : undefined;
  return async (session) => {
    for (const target of columns) await register?.(session, { kind: "backfill", target });
  };
}

export async function addFunctionColumns(
  request: RequestOf<typeof remoteContracts.remoteAlterTableAddColumns>,
  requested: FunctionColumns,
  refresh: Readonly<Record<string, string>>,
  catalog: Catalog,
  caller: AuthorizedCaller,
) {
  requireMain(request);
  const names = (request.new_columns ?? []).flatMap(({ name, all_null }) => (all_null ? name : []));
  const outputs = requested.outputs.map(({ output_name }) => output_name);
  if (!isDeepStrictEqual(names, outputs) || names.length < (request.new_columns?.length ?? 0))
    throw new CatalogError("InvalidInput", "new_columns: must be the outputs of the function, each with all_null");
  const { result: schema } = await catalog.rows.read("schema", { id: request.id, caller }, {});
  const bound = await bindFunction(catalog.store, requested, { schema, refresh }, request.database, caller.principal);
  const { columns, first, insert } = bound;
  const automatic = refreshIntervalOf(refresh) === undefined ? [] : [first];
  const register = await prepareAutomatic(request.id, automatic, catalog, caller);
  const alongside = async (session: Session, table: TableRecord) => {
    await insert(session, table);
    await register(session);
  };
  return commitColumns(catalog, { request, caller, alongside }, {}, new Blob([columns]).stream());
}

function requireOneDefinition({ expression, computed, virtual_column }: NewColumn, index: number): void {
  const given = [expression, computed, virtual_column].filter((each) => each !== undefined);
  if (given.length !== 1)
    throw new CatalogError(
      "InvalidInput",
      `new_columns.${index}: needs one of expression, such as "cast(null as int)", computed and virtual_column`,
    );
}

function sqlOf(columns: readonly NewColumn[], kind: "expression" | "computed") {
  return columns.flatMap(({ name, [kind]: valueSql }) =>
    valueSql === undefined ? [] : [{ name, valueSql: toExpression(valueSql) }],
  );
}

type AlterRequest = RequestOf<typeof contracts.alterTableAlterColumns>;
type Alteration = AlterRequest["alterations"][number];

/** Changes columns. Another function of a column opens a job that computes the rows of the former function again. */
export const alterTableAlterColumns: Handler<"alterTableAlterColumns"> = async (request, catalog, caller) => {
  request.alterations.forEach(requireOneKind);
  const ofFunctions = request.alterations.filter(({ virtual_column }) => virtual_column !== undefined);
  if (ofFunctions.length === 0) {
    const alongside = await requireNoOpenColumnJob(catalog.store, request, pathsOf(request.alterations));
    const change = { request, caller, alongside };
    const alterations = request.alterations.map(toChange);
    const { result, transaction } = await catalog.rows.change("alterColumns", change, { alterations });
    return { ...transaction, version: result.version };
  }
  if (ofFunctions.length < request.alterations.length)
    throw new CatalogError("InvalidInput", "alterations: functions are replaced in a request of their own");
  return replaceFunctions(request, catalog, caller);
};

function pathsOf(alterations: readonly Alteration[]): string[] {
  return alterations.map(({ path }) => path);
}

/** All functions are replaced in one version. Their jobs open after it. */
async function replaceFunctions(request: AlterRequest, catalog: Catalog, caller: AuthorizedCaller) {
  const { store, rows } = catalog;
  requireMain(request);
  requireNameable(request.id);
  const { id, alterations } = request;
  const alongside = await requireNoOpenColumnJob(store, request, pathsOf(alterations));
  const replaced = [];
  for (const each of alterations) replaced.push(await replaceFunction(catalog, { ...request, caller }, each));
  const updates = replaced.map((each) => ({ ...each, replace: false }));
  // The functions must not change without their jobs.
  const opener = { principal: caller.principal.name, namespace: id.slice(0, -1) };
  await requireRoom(store.read, opener, catalog.openJobMaxima, replaced.length);
  const change = { request, caller, alongside };
  const { result, transaction } = await rows.change("updateFieldMetadata", change, { updates });
  const { operationId: operation } = contracts.alterTableBackfillColumns;
  for (const { path: column, metadata } of replaced) {
    const manifest = metadata[manifestOfColumn] ?? undefined;
    const backfill = { id, column, where: everyRow, manifest };
    await openTableJob(catalog, { request: backfill, caller: { ...caller, operation } });
  }
  return { ...transaction, version: result.version };
}

/** Every row with a value has that of the former function. Geneva computes only rows without a value by default. */
const everyRow = "true";

function requireOneKind({ data_type, rename, nullable, virtual_column }: Alteration, index: number): void {
  const isBasic = [data_type, rename, nullable].some((each) => each !== undefined);
  if (isBasic === (virtual_column !== undefined))
    throw new CatalogError(
      "InvalidInput",
      `alterations.${index}: needs data_type, rename or nullable, or else virtual_column`,
    );
}

function toChange({ path, data_type, rename, nullable }: Alteration) {
  return {
    path,
    ...(data_type !== undefined && { dataType: JSON.stringify(toLanceType(data_type)) }),
    ...(rename !== undefined && { rename }),
    ...(nullable !== undefined && { nullable }),
  };
}

export const alterTableDropColumns: Handler<"alterTableDropColumns"> = async (request, { store, rows }, caller) => {
  const alongside = await requireNoOpenColumnJob(store, request, request.columns);
  const change = { request, caller, alongside };
  const { result, transaction } = await rows.change("dropColumns", change, { columns: request.columns });
  return { ...transaction, version: result.version };
};

/** Opens a job. The runner reads its parameters only, so they contain the manifest of the function. */
export const alterTableBackfillColumns: Handler<"alterTableBackfillColumns"> = async (request, catalog, caller) => {
  const { store, rows } = catalog;
  const { table } = await openBranch(catalog, request);
  requireMain(request);
  const stored = await checkBackfill(rows, { ...request, caller });
  const bound = stored.binding === undefined ? {} : await requireRefreshable(catalog, table, stored.binding, request);
  const named = await resolveNames(catalog, { ...request, caller });
  const completed = { ...request, column: stored.column, manifest: stored.manifest, ...bound, ...named };
  const job_id = await openTableJob(catalog, { request: completed, caller });
  // The catalog first learns about externally added columns here.
  if (stored.isAutomatic) await store.write((session) => noteTask(session, automationOf(table.id)));
  return { job_id };
};

export const updateFieldMetadata: Handler<"updateFieldMetadata"> = async (request, { rows }, caller) => {
  const updates = request.updates.map(({ path, metadata, replace = false }) => ({ path, metadata, replace }));
  const { result, transaction } = await rows.change("updateFieldMetadata", { request, caller }, { updates });
  const { version, schema } = result;
  const metadataOf = (path: string) => ({ ...findField(schema.fields, path)?.field.metadata });
  const fields = Object.fromEntries(request.updates.map(({ path }) => [path, metadataOf(path)]));
  return { ...transaction, version, fields };
};

export const updateTableSchemaMetadata: Handler<"updateTableSchemaMetadata"> = async (request, catalog, caller) => {
  await commitSchemaMetadata(catalog, { request, caller }, request.metadata);
  return request.metadata;
};
