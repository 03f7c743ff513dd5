import { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

const contract = contracts.restoreTable;

export const restoreTable: Handler<"restoreTable"> = async (request, { rows }, caller) => {
  const { version } = request;
  return (await rows.change("restore", { contract, request, caller }, { version })).transaction;
};
