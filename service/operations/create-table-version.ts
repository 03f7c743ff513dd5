import { contracts } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { requireTable } from "../domain/require.ts";
import { finishCommit, insertPrepared, prepareVersion, toTableVersion } from "../domain/versions.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.createTableVersion;

export const createTableVersion: Handler<typeof contract> = async (request, catalog, caller) => {
  const identifier = request.id;
  const prepared = await prepareVersion(catalog, await requireTable(catalog.store.read, identifier), request);
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });

  const record = await catalog.store.write(async (session) => {
    const version = await insertPrepared(session, await requireTable(session, identifier), prepared, audit.id);
    if (version.transactionId === audit.id) await audit.record(session);
    return version;
  });
  const finished = await finishCommit(catalog, prepared.location, record);
  return {
    transaction_id: audit.nameOf(record.transactionId),
    version: toTableVersion(prepared.location, finished),
  };
};
