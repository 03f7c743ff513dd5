import { contracts } from "@tiltyard/protocol";
import { deregisterTable as deregister } from "../dropping/drop.ts";
import type { Handler } from "./handler.ts";
import { removeAuditedTable } from "./remove-audited-table.ts";

const contract = contracts.deregisterTable;

export const deregisterTable: Handler<"deregisterTable"> = (request, catalog, caller) =>
  removeAuditedTable({ contract, request }, catalog, caller, deregister);
