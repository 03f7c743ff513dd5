import { checkIdentifier, contracts } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { requireFreeName, requireTable } from "../domain/require.ts";
import { renameTable as rename } from "../store/tables.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.renameTable;

export const renameTable: Handler<typeof contract> = async (request, { store }, caller) => {
  const identifier = request.id;
  // Java's client sends an empty list for none.
  const { new_namespace_id: asked = [] } = request;
  const namespace = asked.length > 0 ? asked : identifier.slice(0, -1);
  const renamed = checkIdentifier([...namespace, request.new_table_name]);
  const audit = prepareAudit({ contract, request, caller, objects: [identifier, renamed] });

  await store.write(async (session) => {
    const table = await requireTable(session, identifier);
    await requireFreeName(session, renamed);
    await rename(session, table.id, renamed);
    await audit.record(session);
  });
  return { transaction_id: audit.name };
};
