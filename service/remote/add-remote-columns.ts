import { contracts } from "@tiltyard/protocol";
import { alterTableAddColumns } from "../operations/alter-table-add-columns.ts";
import type { Handler } from "../operations/handler.ts";

const contract = contracts.alterTableAddColumns;

/** Adds columns. The columns of a schema arrive as an Arrow stream and start without values. */
export const remoteAlterTableAddColumns: Handler<"remoteAlterTableAddColumns"> = async (request, catalog, caller) => {
  const { new_columns } = request;
  if (new_columns !== undefined) return alterTableAddColumns({ ...request, new_columns }, catalog, caller);
  const added = { computed: [], expressions: [], hasSchema: true };
  const sent = { rows: caller.body };
  const { result, transaction } = await catalog.rows.change("addColumns", { contract, request, caller }, added, sent);
  return { ...transaction, version: result.version };
};
