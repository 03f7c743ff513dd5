import { contracts } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { requireTable } from "../domain/require.ts";
import { dropTable as drop } from "../dropping/drop.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.dropTable;

export const dropTable: Handler<typeof contract> = async (request, { store, worker, dropRetentionMs }, caller) => {
  const identifier = request.id;
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });

  const table = await store.write(async (session) => {
    const found = await requireTable(session, identifier);
    await drop(session, found, dropRetentionMs);
    await audit.record(session);
    return found;
  });
  worker.wake();
  return {
    transaction_id: audit.name,
    id: [...identifier],
    location: table.location,
    properties: { ...table.properties },
  };
};
