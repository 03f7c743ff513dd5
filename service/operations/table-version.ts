import { contracts } from "@tiltyard/protocol";
import pMap from "p-map";
import { commit, versionsAtOnce } from "../commits/commit.ts";
import { commitTogether } from "../commits/commit-together.ts";
import { deleteFirstOf, deleteRanges, readRanges } from "../commits/ranges.ts";
import { readVersions, requireBranch, requireKnownBranch, requireVersion, toTableVersion } from "../commits/read.ts";
import { recordVersion } from "../commits/record.ts";
import { branchOf } from "../domain/branch.ts";
import { requireRecordedBranch, requireTable } from "../domain/require.ts";
import { prepareAudit } from "../domain/transaction.ts";
import type { Handler } from "./handler.ts";
import { prepareCommit } from "./prepare-commit.ts";

export const createTableVersion: Handler<"createTableVersion"> = async (request, catalog, caller) => {
  const identifier = request.id;
  const table = await requireTable(catalog.store.read, identifier);
  const { location } = table;
  const prepared = await prepareCommit(catalog, caller, table, request);
  const audit = prepareAudit({ contract: contracts.createTableVersion, request, caller, objects: [identifier] });

  const [record] = await commit(catalog, async (session) => {
    const record = await recordVersion(session, await requireTable(session, identifier), prepared, audit.id);
    // The first attempt of a retried commit already has an audit record.
    if (record.transactionId === audit.id) await audit.record(session);
    return [{ location, record }];
  });
  if (record === undefined) throw new Error("a commit has a version");
  return { transaction_id: audit.nameOf(record.transactionId), version: toTableVersion(location, record) };
};

export const listTableVersions: Handler<"listTableVersions"> = async (request, catalog) => {
  const { read } = catalog.store;
  const branch = branchOf(request);
  const table = await requireTable(read, request.id);
  await requireBranch(catalog, table, branch);
  return readVersions(catalog, table, branch, request);
};

export const describeTableVersion: Handler<"describeTableVersion"> = async (request, catalog) => {
  const { read } = catalog.store;
  const branch = branchOf(request);
  const table = await requireTable(read, request.id);
  await requireBranch(catalog, table, branch);
  const record = await requireVersion(catalog, table, branch, request.version);
  return { version: toTableVersion(table.location, record) };
};

export const batchDeleteTableVersions: Handler<"batchDeleteTableVersions"> = async (request, catalog, caller) => {
  const { store } = catalog;
  const identifier = request.id;
  const audit = prepareAudit({ contract: contracts.batchDeleteTableVersions, request, caller, objects: [identifier] });
  const branch = branchOf(request);
  const ranges = readRanges(request.ranges);
  await requireKnownBranch(catalog, await requireTable(store.read, identifier), branch);

  let deleted_count = 0;
  for (let isDone = false; !isDone; ) {
    const isFirst = deleted_count === 0;
    deleted_count += await store.write(async (session) => {
      const table = await requireTable(session, identifier);
      await requireRecordedBranch(session, table, branch);
      if (isFirst) await audit.record(session);
      const deleted = await deleteFirstOf(session, table.id, branch, ranges);
      isDone = deleted === 0;
      return isDone ? deleteRanges(session, table.id, branch, ranges) : deleted;
    });
  }
  return { context: { request_id: caller.requestId }, deleted_count, transaction_id: audit.name };
};

export const batchCreateTableVersions: Handler<"batchCreateTableVersions"> = async (request, catalog, caller) => {
  const objects = request.entries.map((entry) => entry.id);
  const audit = prepareAudit({ contract: contracts.batchCreateTableVersions, request, caller, objects });
  const entries = await pMap(
    request.entries,
    async (entry) => {
      const table = await requireTable(catalog.store.read, entry.id);
      return { identifier: entry.id, prepared: await prepareCommit(catalog, caller, table, entry) };
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
