import { contracts } from "@tiltyard/protocol";
import { openTransaction } from "../domain/audit.ts";
import { dropRecords } from "../domain/drop.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.dropTable;

export const dropTable: Handler<typeof contract> = async (request, { store, finisher }, caller) => {
  const identifier = request.id;
  const transaction = openTransaction({ contract, request, caller, objects: [identifier] });

  const table = await store.write(async (session) => {
    const found = await requireTable(session, identifier);
    await dropRecords(session, found);
    await transaction.record(session);
    return found;
  });
  await finisher.deleteObjects(table.location);
  return {
    transaction_id: transaction.name,
    id: [...identifier],
    location: table.location,
    properties: { ...table.properties },
  };
};
