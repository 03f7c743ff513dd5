import { isDeepStrictEqual } from "node:util";
import {
  formatIdentifier,
  type Identifier,
  viewDefinitionPrefix as prefix,
  shown,
  sourceOfView,
} from "@tiltyard/protocol";
import { z } from "zod";
import { readVersionRecords, requireBranch, toTableVersion } from "../../commits/read.ts";
import { branchOf } from "../../domain/branch.ts";
import { readPage } from "../../domain/page.ts";
import { setProtected } from "../../domain/protection.ts";
import { requireTable } from "../../domain/require.ts";
import { undropTable as undrop } from "../../dropping/undrop.ts";
import { toExpression } from "../../rows/sql-text.ts";
import { findAuditRecord } from "../../store/audit.ts";
import { listDroppedTables as list } from "../../store/dropped-tables.ts";
import { listTablesWith } from "../../store/tables.ts";
import { type Handler, mayRead } from "../handler.ts";

const droppedTables = { name: "dropped-tables", key: z.object({ droppedAtMillis: z.int(), id: z.int32() }) };

export const listDroppedTables: Handler<"listDroppedTables"> = async (request, { store, dropRetentionMs }) => {
  const { items, ...page } = await readPage(
    droppedTables,
    request,
    (after, limit) => list(store.read, { within: request.id, after, limit }),
    ({ droppedAtMillis, id }) => ({ droppedAtMillis, id }),
  );
  return {
    dropped_tables: items.map(({ id, identifier, location, droppedAtMillis }) => ({
      dropped_id: id,
      id: [...identifier],
      location,
      dropped_at_millis: droppedAtMillis,
      kept_until_millis: droppedAtMillis + dropRetentionMs,
    })),
    ...page,
  };
};

export const undropTable: Handler<"undropTable"> = async (request, { store }, caller) => {
  const dropped = { id: request.dropped_id, identifier: request.id };
  const { identifier, transaction } = await store.write((session) =>
    undrop(session, { caller, request }, dropped, request.new_id),
  );
  return { transaction_id: transaction, id: [...identifier] };
};

export const protectTable: Handler<"protectTable"> = async (request, { store }, caller) => ({
  transaction_id: await store.write((session) => setProtected(session, { caller, request }, request.id, true)),
  protected: true,
});

export const unprotectTable: Handler<"unprotectTable"> = async (request, { store }, caller) => ({
  transaction_id: await store.write((session) => setProtected(session, { caller, request }, request.id, false)),
  protected: false,
});

/** Lists the views of a table in the whole catalog, because a view need not be in the namespace of its source. */
export const listTableViews: Handler<"listTableViews"> = async ({ id }, { store }, caller) => {
  await requireTable(store.read, id);
  const views = await listTablesWith(store.read, [], JSON.stringify(`${prefix}source_query`));
  const isReadable = mayRead(caller);
  return {
    views: views
      .filter(({ identifier, properties }) => isReadable(identifier) && isDeepStrictEqual(sourceOf(properties), id))
      .map(({ identifier }) => [...identifier]),
  };
};

/** Returns the source of a view; undefined if its definition has none. */
function sourceOf(properties: Readonly<Record<string, string>>): Identifier | undefined {
  try {
    return sourceOfView({ source_query: properties[`${prefix}source_query`] ?? "" });
  } catch {
    return undefined;
  }
}

/** The maximum number of versions of a page. Each needs a read of its transaction. */
const pageSizeMax = 100;

export const listTableHistory: Handler<"listTableHistory"> = async (request, catalog) => {
  const { read } = catalog.store;
  const branch = branchOf(request);
  const table = await requireTable(read, request.id);
  await requireBranch(catalog, table, branch);
  const limit = Math.min(request.limit ?? pageSizeMax, pageSizeMax);
  const { items, ...page } = await readVersionRecords(catalog, table, branch, { ...request, limit, descending: true });
  const versions = items.map(async (record) => {
    const id = [...request.id.slice(0, -1), record.transactionId];
    const transaction = await findAuditRecord(read, id);
    return {
      ...toTableVersion(table.location, record),
      ...(transaction && {
        transaction_id: formatIdentifier(id, request.delimiter),
        operation: transaction.operation,
        principal: transaction.principal,
      }),
    };
  });
  return { versions: await Promise.all(versions), ...page };
};

const rowsWhenAbsent = 20;

export const listTableRows: Handler<"listTableRows"> = async (request, { rows }, caller) => {
  const { offset, sort, descending, like, like_row, columns, whole } = request;
  const filter = toExpression(request.filter);
  const limit = Math.min(request.limit ?? rowsWhenAbsent, whole ? 1 : shown.rows);
  const args = { limit, offset, filter, sort, descending, like, like_row, columns, whole };
  return (await rows.read("firstRows", { ...request, caller }, args)).result;
};
