import type { Handler } from "./handler.ts";

export const countTableRows: Handler<"countTableRows"> = async (request, { rows }, caller) => {
  const { predicate } = request;
  return (await rows.read("count", { ...request, caller }, { predicate })).result;
};
