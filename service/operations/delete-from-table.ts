import { contracts, type RequestOf } from "@tiltyard/protocol";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.deleteFromTable;

export const deleteFromTable: Handler<typeof contract> = async (request, catalog, caller) => {
  const { num_deleted_rows: _, ...answer } = await deleteRows(request, catalog, caller);
  return answer;
};

/** Deletes rows, and counts them. */
export async function deleteRows(request: RequestOf<typeof contract>, { datasets }: Catalog, caller: AuthorizedCaller) {
  await using dataset = await datasets.openForChange({ contract, request, caller });
  const { version, numDeletedRows } = await dataset.run((table) => table.delete(request.predicate));
  return { ...transactionOf(dataset), version, num_deleted_rows: numDeletedRows };
}
