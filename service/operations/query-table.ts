import type { Handler } from "./handler.ts";

export const queryTable: Handler<"queryTable"> = async (request, { rows }, caller) =>
  rows.query({ ...request, caller }, request);
