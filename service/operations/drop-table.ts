import { contracts } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { dropTableRecords } from "../domain/drop.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.dropTable;

export const dropTable: Handler<typeof contract> = async (request, { store, finisher, dropRetentionMs }, caller) => {
  const identifier = request.id;
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });

  const { table, location } = await store.write(async (session) => {
    const found = await requireTable(session, identifier);
    const freed = await dropTableRecords(session, found, dropRetentionMs);
    await audit.record(session);
    return { table: found, location: freed };
  });
  if (location !== undefined) await finisher.deleteObjects(location);
  return {
    transaction_id: audit.name,
    id: [...identifier],
    location: table.location,
    properties: { ...table.properties },
  };
};
