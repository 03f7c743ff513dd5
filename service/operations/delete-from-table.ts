import { contracts, type RequestOf } from "@tiltyard/protocol";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";

const contract = contracts.deleteFromTable;

export const deleteFromTable: Handler<"deleteFromTable"> = async (request, catalog, caller) => {
  const { num_deleted_rows: _, ...answer } = await deleteRows(request, catalog, caller);
  return answer;
};

/** Deletes rows and returns their number. */
export async function deleteRows(request: RequestOf<typeof contract>, { rows }: Catalog, caller: AuthorizedCaller) {
  const { predicate } = request;
  const { result, transaction } = await rows.change("delete", { contract, request, caller }, { predicate });
  return { ...transaction, version: result.version, num_deleted_rows: result.numDeletedRows };
}
