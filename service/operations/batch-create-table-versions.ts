import { contracts } from "@tiltyard/protocol";
import pMap from "p-map";
import { commitVersions, versionsAtOnce } from "../commits/commit.ts";
import { prepareVersion } from "../commits/prepare.ts";
import { toTableVersion } from "../commits/read.ts";
import { prepareAudit } from "../domain/audit.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.batchCreateTableVersions;

export const batchCreateTableVersions: Handler<typeof contract> = async (request, catalog, caller) => {
  const { entries } = request;
  const objects = entries.map((entry) => entry.id);
  const audit = prepareAudit({ contract, request, caller, objects });
  const together = await pMap(
    entries,
    async (entry) => ({
      identifier: entry.id,
      prepared: await prepareVersion(catalog, await requireTable(catalog.store.read, entry.id), entry),
    }),
    { concurrency: versionsAtOnce },
  );

  const records = (await commitVersions(catalog, { audit, together })).together;
  const isRepeated = records.every((record) => record.transactionId !== audit.id);
  return {
    transaction_id: audit.nameOf(isRepeated ? (records[0]?.transactionId ?? "") : audit.id),
    versions: records.map((record, index) => toTableVersion(together[index]?.prepared.location ?? "", record)),
  };
};
