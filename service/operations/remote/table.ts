import { formatIdentifier } from "@tiltyard/protocol";
import { autoRefreshMetadata, withAutoRefreshOptions } from "../../automation/auto-refresh.ts";
import { requireNamespace, requireTable } from "../../domain/require.ts";
import { listTables } from "../../store/tables.ts";
import type { Handler } from "../handler.ts";
import { renameTable } from "../table.ts";
import { addColumns, addFunctionColumns, commitColumns } from "../table-columns.ts";
import { deleteRows, mergeRows, updateTable } from "../table-data.ts";
import { listTableTags } from "../table-tag.ts";
import { listTableVersions } from "../table-version.ts";

/** The maximum length of the response to a request without a limit. The client reads no page tokens. */
const limitMax = 10_000;

export const remoteListTables: Handler<"remoteListTables"> = async (request, { store }) => {
  await requireNamespace(store.read, request.id);
  const limit = Math.min(request.limit ?? limitMax, limitMax);
  return {
    tables: await listTables(store.read, request.id, request.page_token ?? "", { limit, includeDeclared: true }),
  };
};

/** Describes a table with its version and its schema, without which LanceDB's client cannot open it. */
export const remoteDescribeTable: Handler<"remoteDescribeTable"> = async (request, { store, rows }, caller) => {
  const { location } = await requireTable(store.read, request.id);
  const { version, result } = await rows.read("lanceSchema", { ...request, caller }, {});
  return {
    table: formatIdentifier(request.id, request.delimiter),
    version,
    location: location.uri,
    schema: withAutoRefreshOptions(result),
  };
};

export const remoteRenameTable: Handler<"remoteRenameTable"> = (request, catalog, caller) =>
  renameTable({ ...request, new_namespace_id: request.new_namespace }, catalog, caller);

/** Adds columns. The columns of a schema arrive as an Arrow stream and start without values. */
export const remoteAlterTableAddColumns: Handler<"remoteAlterTableAddColumns"> = async (request, catalog, caller) => {
  const { new_columns, function: bound } = request;
  const refresh = autoRefreshMetadata(request, catalog.autoRefresh);
  if (bound !== undefined) return addFunctionColumns(request, bound, refresh, catalog, caller);
  if (new_columns !== undefined) return addColumns({ ...request, new_columns }, refresh, catalog, caller);
  return commitColumns(catalog, { request, caller }, {}, caller.body);
};

export const remoteListTableVersions: Handler<"remoteListTableVersions"> = async (request, catalog, caller) => {
  const pages = await readWhole((page_token) => listTableVersions({ ...request, page_token }, catalog, caller));
  return { versions: pages.flatMap(({ versions }) => versions) };
};

export const remoteListTableTags: Handler<"remoteListTableTags"> = async (request, catalog, caller) => {
  const pages = await readWhole((page_token) => listTableTags({ ...request, page_token }, catalog, caller));
  return Object.fromEntries(pages.flatMap(({ tags }) => Object.entries(tags)));
};

// The client interprets missing counts as 0, so the responses of the protocol's operations suffice.

export const remoteMergeInsertIntoTable: Handler<"remoteMergeInsertIntoTable"> = mergeRows;

export const remoteUpdateTable: Handler<"remoteUpdateTable"> = async (request, catalog, caller) => {
  const { updated_rows, version } = await updateTable(request, catalog, caller);
  return { rows_updated: updated_rows, version };
};

export const remoteDeleteFromTable: Handler<"remoteDeleteFromTable"> = async (request, catalog, caller) => {
  const { num_deleted_rows, version } = await deleteRows(request, catalog, caller);
  return { num_deleted_rows, version };
};

/** The maximum number of pages in one response to clients that read no page tokens. */
const pagesMax = 50;

async function readWhole<Page extends { readonly page_token?: string | undefined }>(
  read: (page_token: string | undefined) => Promise<Page>,
): Promise<Page[]> {
  const pages: Page[] = [];
  let token: string | undefined;
  do {
    const page = await read(token);
    pages.push(page);
    token = page.page_token;
  } while (token !== undefined && pages.length < pagesMax);
  return pages;
}
