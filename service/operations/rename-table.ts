import { checkIdentifier, contracts, renamedTo } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { requireNoOpenJob } from "../domain/job-table.ts";
import { requireFreeName, requireTable } from "../domain/require.ts";
import { renameTable as rename } from "../store/tables.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.renameTable;

export const renameTable: Handler<"renameTable"> = async (request, { store }, caller) => {
  const identifier = request.id;
  const renamed = checkIdentifier(renamedTo(request));
  const audit = prepareAudit({ contract, request, caller, objects: [identifier, renamed] });

  await store.write(async (session) => {
    const table = await requireTable(session, identifier);
    await requireFreeName(session, renamed);
    await requireNoOpenJob(session, table);
    await rename(session, table.id, renamed);
    await audit.record(session);
  });
  return { transaction_id: audit.name };
};
