import { formatIdentifier } from "@tiltyard/protocol";
import { readVersionRecords, requireBranch, toTableVersion } from "../../commits/read.ts";
import { branchOf } from "../../domain/branch.ts";
import { requireTable } from "../../domain/require.ts";
import { findAuditRecord } from "../../store/audit.ts";
import type { Handler } from "../handler.ts";

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
