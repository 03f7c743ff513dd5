import { contracts } from "@tiltyard/protocol";
import pMap from "p-map";
import { versionsAtOnce } from "../commits/commit.ts";
import { commitTogether } from "../commits/commit-together.ts";
import { prepareVersion } from "../commits/prepare.ts";
import { toTableVersion } from "../commits/read.ts";
import { prepareAudit } from "../domain/audit.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";
import { requireCommitAllowed } from "./require-commit-allowed.ts";

const contract = contracts.batchCreateTableVersions;

export const batchCreateTableVersions: Handler<"batchCreateTableVersions"> = async (request, catalog, caller) => {
  const objects = request.entries.map((entry) => entry.id);
  const audit = prepareAudit({ contract, request, caller, objects });
  const entries = await pMap(
    request.entries,
    async (entry) => {
      const table = await requireTable(catalog.store.read, entry.id);
      const prepared = await prepareVersion(catalog, table, entry);
      await requireCommitAllowed(catalog, caller, table, prepared);
      return { identifier: entry.id, prepared };
    },
    { concurrency: versionsAtOnce },
  );

  const records = (await commitTogether(catalog, { audit, entries })).entries;
  const isRepeated = records.every((record) => record.transactionId !== audit.id);
  return {
    transaction_id: audit.nameOf(isRepeated ? (records[0]?.transactionId ?? "") : audit.id),
    versions: records.map((record, index) => toTableVersion(entries[index]?.prepared.location ?? "", record)),
  };
};
