import { formatIdentifier, type remoteContracts } from "@tiltyard/protocol";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "../operations/handler.ts";

/** LanceDB's client opens a table only with its version and its schema. */
export const remoteDescribeTable: Handler<typeof remoteContracts.remoteDescribeTable> = async (
  request,
  { store, rows },
  caller,
) => {
  const { location } = await requireTable(store.read, request.id);
  const { version, result } = await rows.read("lanceSchema", { ...request, caller }, {});
  return { table: formatIdentifier(request.id, request.delimiter), version, location, schema: result };
};
