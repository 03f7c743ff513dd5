import { contracts, type remoteContracts } from "@tiltyard/protocol";
import { fileBytes } from "../dataset/message-stream.ts";
import { readOneFile } from "../dataset/write-rows.ts";
import { alterTableAddColumns } from "../operations/alter-table-add-columns.ts";
import type { Handler } from "../operations/handler.ts";
import { transactionOf } from "../operations/transaction-of.ts";

const contract = contracts.alterTableAddColumns;

/** Columns of a schema come as an Arrow stream, and begin without values. */
export const remoteAlterTableAddColumns: Handler<typeof remoteContracts.remoteAlterTableAddColumns> = async (
  request,
  catalog,
  caller,
) => {
  const { new_columns } = request;
  if (new_columns !== undefined) return alterTableAddColumns({ ...request, new_columns }, catalog, caller);
  const schema = await readOneFile(caller.body, fileBytes.most);
  await using dataset = await catalog.datasets.openForChange({ contract, request, caller });
  const { version } = await dataset.runRaw((table) => table.addColumnsWithSchema(schema));
  return { ...transactionOf(dataset), version };
};
