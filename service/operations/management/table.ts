import { isDeepStrictEqual } from "node:util";
import { toExpression } from "@tiltyard/lance-worker";
import { CatalogError, formatIdentifier, foundMax, type Identifier, shown } from "@tiltyard/protocol";
import { z } from "zod";
import { withRole } from "../../auth/authorize.ts";
import { openBranch, readVersionRecords, toTableVersion } from "../../commits/read.ts";
import { readPage, readScannedPage } from "../../domain/page.ts";
import { noteAutomations } from "../../domain/policy.ts";
import { requireFreeName, requireTable } from "../../domain/require.ts";
import { type Caller, makeAudited } from "../../domain/transaction.ts";
import { requireNoOpenJob } from "../../jobs/job.ts";
import { findAuditRecord } from "../../store/audit.ts";
import { expiryOf } from "../../store/clock.ts";
import { findDroppedTable, listDroppedTables as list } from "../../store/dropped-tables.ts";
import { search } from "../../store/search.ts";
import type { Session, Store } from "../../store/store.ts";
import { protection, renameTable, setTableProperties } from "../../store/tables.ts";
import { deleteTask } from "../../store/tasks.ts";
import { listViewsOf } from "../../store/views.ts";
import { purgeOf } from "../../tables/drop.ts";
import type { Handler } from "../handler.ts";

const droppedTables = { name: "dropped-tables", key: z.object({ droppedAtMillis: z.int(), id: z.int32() }) };

export const listDroppedTables: Handler<"listDroppedTables"> = async (request, { store, dropRetentionMs }) => {
  const { items, ...page } = await readPage(droppedTables, request, (after, limit) =>
    list(store.read, { within: request.id, after, limit }),
  );
  const keptForMs = store.read.time() - (await expiryOf(store.read, dropRetentionMs));
  return {
    dropped_tables: items.map(({ id, identifier, location, droppedAtMillis }) => ({
      dropped_id: id,
      id: identifier,
      location: location.uri,
      dropped_at_millis: droppedAtMillis,
      kept_until_millis: droppedAtMillis + keptForMs,
    })),
    ...page,
  };
};

export const undropTable: Handler<"undropTable"> = async (request, { store }, caller) => {
  const { dropped_id, id, new_id: identifier = id } = request;
  const isRenamed = !isDeepStrictEqual(id, identifier);
  const objects = isRenamed ? [id, identifier] : [identifier];
  const work = async (session: Session) => {
    const found = await findDroppedTable(session, dropped_id);
    // The comparison uses parts, because joined parts of different names may be equal.
    if (found === undefined || !isDeepStrictEqual(id, found.identifier))
      throw new CatalogError("TableNotFound", "no dropped table has this id and name; see the list of dropped tables");
    await requireFreeName(session, identifier);
    if (isRenamed) await requireNoOpenJob(session, found);
    await renameTable(session, dropped_id, identifier);
    await deleteTask(session, purgeOf(dropped_id));
    // They may have become due meanwhile.
    await noteAutomations(session, dropped_id);
  };
  const transaction = await makeAudited(store, { caller, objects }, work, { locking: "jobs" });
  return { ...transaction, id: identifier };
};

export const protectTable: Handler<"protectTable"> = ({ id }, { store }, caller) =>
  setProtected(store, id, caller, true);

export const unprotectTable: Handler<"unprotectTable"> = ({ id }, { store }, caller) =>
  setProtected(store, id, caller, false);

/** Protects a table from being dropped, or removes the protection. */
async function setProtected(store: Store, id: Identifier, caller: Caller, protect: boolean) {
  const transaction = await makeAudited(store, { caller, objects: [id] }, async (session) => {
    const table = await requireTable(session, id);
    const { [protection]: _, ...others } = table.properties;
    await setTableProperties(session, table.id, protect ? { ...others, [protection]: "true" } : others);
  });
  return { ...transaction, protected: protect };
}

const viewsAtOnce = 1_000;
const tableViews = { name: "table-views", key: z.int32() };

/** Lists the views of a table in the whole catalog, because a view need not be in the namespace of its source. */
export const listTableViews: Handler<"listTableViews"> = async ({ id, ...request }, { store }, caller) => {
  await requireTable(store.read, id);
  const isReadable = withRole(caller.principal, "reader");
  const { items, ...page } = await readScannedPage(
    tableViews,
    request,
    async (after = 0, limit) => {
      const found = await listViewsOf(store.read, id, after, viewsAtOnce);
      const readable = found.filter(({ identifier }) => isReadable(identifier));
      const items = readable.slice(0, limit);
      const isWhole = readable.length <= limit;
      const last = isWhole ? found.at(-1) : items.at(-1);
      return { items, next: isWhole && found.length < viewsAtOnce ? undefined : last?.tableId };
    },
    ({ tableId }) => tableId,
  );
  return { views: items.map(({ identifier }) => identifier), ...page };
};

/** The maximum number of versions of a page. Each needs a read of its transaction. */
const pageSizeMax = 100;

export const listTableHistory: Handler<"listTableHistory"> = async (request, catalog, caller) => {
  const isReadable = withRole(caller.principal, "reader");
  const at = await openBranch(catalog, request);
  const limit = Math.min(request.limit ?? pageSizeMax, pageSizeMax);
  const { items, ...page } = await readVersionRecords(catalog, at, { ...request, limit, descending: true });
  const versions = items.map(async (record) => {
    // The transaction is in another namespace if the table was moved since, or in a batch with other tables.
    const transaction = await findAuditRecord(catalog.store.read, record.transactionId);
    const id = [...(transaction?.namespace ?? []), record.transactionId];
    return {
      ...toTableVersion({ location: at.table.location, record }),
      lance_operation: record.lanceOperation,
      num_rows: record.rowCount,
      ...(transaction && {
        ...(isReadable(id) && { transaction_id: formatIdentifier(id, request.delimiter) }),
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

export const searchNamespace: Handler<"searchNamespace"> = async (
  { id: within, name, delimiter, limit = foundMax },
  { store },
) => {
  const parts = name.split(delimiter);
  return search(store.read, { within, parts, limit: Math.min(limit, foundMax) });
};
