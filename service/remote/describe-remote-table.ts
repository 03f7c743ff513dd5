import { formatIdentifier } from "@tiltyard/protocol";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "../operations/handler.ts";

/** Describes a table with its version and its schema, without which LanceDB's client cannot open it. */
export const remoteDescribeTable: Handler<"remoteDescribeTable"> = async (request, { store, rows }, caller) => {
  const { location } = await requireTable(store.read, request.id);
  const { version, result } = await rows.read("lanceSchema", { ...request, caller }, {});
  return { table: formatIdentifier(request.id, request.delimiter), version, location, schema: result };
};
