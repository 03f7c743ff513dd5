import type { contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";

export const queryTable: Handler<typeof contracts.queryTable> = async (request, { rows }, caller) =>
  rows.query({ ...request, caller }, request);
