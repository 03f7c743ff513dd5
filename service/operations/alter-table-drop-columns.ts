import { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

const contract = contracts.alterTableDropColumns;

export const alterTableDropColumns: Handler<"alterTableDropColumns"> = async (request, { rows }, caller) => {
  const { result, transaction } = await rows.change(
    "dropColumns",
    { contract, request, caller },
    { columns: request.columns },
  );
  return { ...transaction, version: result.version };
};
