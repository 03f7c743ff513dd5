import type { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

export const countTableRows: Handler<typeof contracts.countTableRows> = async (request, { rows }, caller) => {
  const { predicate } = request;
  return (await rows.read("count", { ...request, caller }, { predicate })).result;
};
