import { contracts } from "@tiltyard/protocol";
import { dropTable as drop } from "../dropping/drop.ts";
import type { Handler } from "./handler.ts";
import { removeAuditedTable } from "./remove-audited-table.ts";

const contract = contracts.dropTable;

export const dropTable: Handler<"dropTable"> = (request, catalog, caller) =>
  removeAuditedTable({ contract, request }, catalog, caller, (session, table) =>
    drop(session, table, catalog.dropRetentionMs),
  );
