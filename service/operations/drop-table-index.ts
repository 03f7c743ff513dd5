import { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

const contract = contracts.dropTableIndex;

export const dropTableIndex: Handler<"dropTableIndex"> = async (request, { rows }, caller) => {
  const args = { name: request.indexName };
  return (await rows.change("dropIndex", { contract, request, caller }, args)).transaction;
};
