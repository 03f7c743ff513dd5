import { contracts } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { requireUnprotected } from "../domain/drop.ts";
import { requireTable } from "../domain/require.ts";
import { deleteTable } from "../store/tables.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.deregisterTable;

export const deregisterTable: Handler<typeof contract> = async (request, { store }, caller) => {
  const identifier = request.id;
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });

  const table = await store.write(async (session) => {
    const found = await requireTable(session, identifier);
    requireUnprotected(found);
    await deleteTable(session, found.id);
    await audit.record(session);
    return found;
  });
  return {
    transaction_id: audit.name,
    id: [...identifier],
    location: table.location,
    properties: { ...table.properties },
  };
};
