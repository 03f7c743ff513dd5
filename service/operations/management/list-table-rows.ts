import { type managementContracts, shown } from "@tiltyard/protocol";
import type { Handler } from "../handler.ts";

const rowsWhenAbsent = 20;

export const listTableRows: Handler<typeof managementContracts.listTableRows> = async (request, { rows }, caller) => {
  const limit = Math.min(request.limit ?? rowsWhenAbsent, shown.rows);
  return (await rows.read("firstRows", { ...request, caller }, { limit })).result;
};
