import { formatIdentifier, parseIdentifier } from "@tiltyard/protocol";
import { keyText, readScannedPage } from "../../domain/page.ts";
import { propertiesOf } from "../../domain/transaction.ts";
import { listTransactions as list } from "../../store/transaction-lists.ts";
import type { Handler } from "../handler.ts";

/** The maximum number of transactions of a page. Each may have 256 KiB of properties. */
const pageSizeMax = 100;

export const listTransactions: Handler<"listTransactions"> = async (request, { store }) => {
  const { id: within, delimiter, principal, status: statuses, ascending = false } = request;
  const { since_millis: sinceMillis, until_millis: untilMillis } = request;
  const table = request.table === undefined ? undefined : parseIdentifier(request.table, delimiter);
  const filter = { within, table, principal, statuses, sinceMillis, untilMillis };
  const { items, ...page } = await readScannedPage(
    { name: `transactions ${ascending}`, key: keyText, most: pageSizeMax },
    request,
    (after, limit) => list(store.read, filter, { after, limit, ascending }),
    ({ id }) => id,
  );
  return {
    transactions: items.map((record) => ({
      transaction_id: formatIdentifier([...record.namespace, record.id], delimiter),
      status: record.status,
      operation: record.operation,
      objects: record.objects,
      principal: record.principal,
      request_id: record.requestId,
      properties: propertiesOf(record),
      created_at_millis: record.createdAtMillis,
      updated_at_millis: record.updatedAtMillis,
    })),
    ...page,
  };
};
