import { shown } from "@tiltyard/protocol";
import type { Handler } from "../handler.ts";

const rowsWhenAbsent = 20;

export const listTableRows: Handler<"listTableRows"> = async (request, { rows }, caller) => {
  const { offset, filter, sort, descending, like, like_row, columns, whole } = request;
  const limit = Math.min(request.limit ?? rowsWhenAbsent, whole ? 1 : shown.rows);
  const args = { limit, offset, filter, sort, descending, like, like_row, columns, whole };
  return (await rows.read("firstRows", { ...request, caller }, args)).result;
};
