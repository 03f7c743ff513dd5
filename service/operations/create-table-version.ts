import { contracts } from "@tiltyard/protocol";
import { commit } from "../commits/commit.ts";
import { prepareVersion } from "../commits/prepare.ts";
import { toTableVersion } from "../commits/read.ts";
import { recordVersion } from "../commits/record.ts";
import { prepareAudit } from "../domain/audit.ts";
import { requireTable } from "../domain/require.ts";
import type { Handler } from "./handler.ts";
import { requireCommitAllowed } from "./require-commit-allowed.ts";

const contract = contracts.createTableVersion;

export const createTableVersion: Handler<"createTableVersion"> = async (request, catalog, caller) => {
  const identifier = request.id;
  const table = await requireTable(catalog.store.read, identifier);
  const prepared = await prepareVersion(catalog, table, request);
  const { location } = prepared;
  await requireCommitAllowed(catalog, caller, table, prepared);
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });

  const [record] = await commit(catalog, async (session) => {
    const record = await recordVersion(session, await requireTable(session, identifier), prepared, audit.id);
    // The first attempt of a retried commit already has an audit record.
    if (record.transactionId === audit.id) await audit.record(session);
    return [{ location, record }];
  });
  if (record === undefined) throw new Error("a commit has a version");
  return { transaction_id: audit.nameOf(record.transactionId), version: toTableVersion(location, record) };
};
