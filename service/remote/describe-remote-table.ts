import { formatIdentifier, type remoteContracts } from "@tiltyard/protocol";
import { readLanceSchema } from "../dataset/lance-schema.ts";
import type { Handler } from "../operations/handler.ts";

/** LanceDB's client opens no table without its version and its schema. */
export const remoteDescribeTable: Handler<typeof remoteContracts.remoteDescribeTable> = async (
  request,
  { datasets },
) => {
  await using dataset = await datasets.openVersion(request);
  return {
    table: formatIdentifier(request.id, request.delimiter),
    version: dataset.version,
    location: dataset.record.location,
    schema: readLanceSchema(await dataset.schema()),
  };
};
