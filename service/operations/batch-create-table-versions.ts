import { contracts } from "@tiltyard/protocol";
import pMap from "p-map";
import { prepareAudit } from "../domain/audit.ts";
import { requireTable } from "../domain/require.ts";
import { inTurns } from "../domain/turns.ts";
import { finishCommit, insertPrepared, prepareVersion, toTableVersion, versionsAtOnce } from "../domain/versions.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.batchCreateTableVersions;

export const batchCreateTableVersions: Handler<typeof contract> = async (request, catalog, caller) => {
  const { entries } = request;
  const objects = entries.map((entry) => entry.id);
  const audit = prepareAudit({ contract, request, caller, objects });
  const prepared = await pMap(
    entries,
    async (entry) => ({
      identifier: entry.id,
      version: await prepareVersion(catalog, await requireTable(catalog.store.read, entry.id), entry),
    }),
    { concurrency: versionsAtOnce },
  );

  const { records, transactionId } = await catalog.store.write(async (session) => {
    const inserted = [];
    for await (const { identifier, version } of inTurns(prepared))
      inserted.push(await insertPrepared(session, await requireTable(session, identifier), version, audit.id));
    const repeated = inserted.every((record) => record.transactionId !== audit.id);
    if (!repeated) await audit.record(session);
    return { records: inserted, transactionId: repeated ? (inserted[0]?.transactionId ?? "") : audit.id };
  });
  const versions = await pMap(
    records,
    async (record, index) => {
      const location = prepared[index]?.version.location ?? "";
      return toTableVersion(location, await finishCommit(catalog, location, record));
    },
    { concurrency: versionsAtOnce },
  );
  return { transaction_id: audit.nameOf(transactionId), versions };
};
