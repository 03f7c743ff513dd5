import { CatalogError, type managementContracts, type RequestOf } from "@tiltyard/protocol";
import { putPolicy } from "../../domain/policy.ts";
import { indexedColumn } from "../../rows/columns.ts";
import type { AuthorizedCaller, Catalog, Handler } from "../handler.ts";

type Contract = typeof managementContracts.putTablePolicy;

export const putTablePolicy: Handler<"putTablePolicy"> = async (request, catalog, caller) => {
  await requireColumns(request, catalog, caller);
  const { id, auto_compact, auto_build_index, auto_clean_up } = request;
  const policy = { auto_compact, auto_build_index, auto_clean_up };
  return {
    transaction_id: await catalog.store.write((session) => putPolicy(session, { caller, request }, id, policy)),
  };
};

/** Validates columns like the requests that open the jobs. A table without a version has no columns yet. */
async function requireColumns(
  { id, auto_build_index = [] }: RequestOf<Contract>,
  { rows }: Catalog,
  caller: AuthorizedCaller,
): Promise<void> {
  const columns = new Set<string>();
  try {
    for (const { column, index_type } of auto_build_index)
      columns.add(await indexedColumn(rows, { id, column, index_type, caller }));
  } catch (error) {
    if (error instanceof CatalogError && error.kind === "TableVersionNotFound") return;
    throw error;
  }
  if (columns.size < auto_build_index.length)
    throw new CatalogError("InvalidInput", "auto_build_index: must have one policy for each column");
}
