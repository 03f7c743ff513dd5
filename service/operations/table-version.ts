import { inDatabase } from "@tiltyard/protocol";
import pMap from "p-map";
import { commit, commitTogether, versionsAtOnce } from "../commits/commit.ts";
import { deleteFirstOf, deleteRanges, readRanges } from "../commits/ranges.ts";
import { openBranch, openKnownBranch, readVersions, requireVersion, toTableVersion } from "../commits/read.ts";
import { recordVersion } from "../commits/record.ts";
import { requireNotDropped, requireRecordedBranch, requireTable } from "../domain/require.ts";
import { prepareAudit, requireRecordable } from "../domain/transaction.ts";
import type { Handler } from "./handler.ts";
import { prepareCommit } from "./prepare-commit.ts";

export const createTableVersion: Handler<"createTableVersion"> = async (request, catalog, caller) => {
  const identifier = request.id;
  const table = await requireTable(catalog.store.read, identifier);
  const prepared = await prepareCommit(catalog, caller, table, request);
  const audit = prepareAudit({ caller, objects: [identifier] });

  const [version] = await commit(catalog, async (session) => {
    const record = await recordVersion(session, await requireTable(session, identifier), prepared, audit.id);
    // The first attempt of a retried commit already has an audit record.
    if (record.transactionId === audit.id) await audit.record(session);
    return [{ location: table.location, record }];
  });
  if (version === undefined) throw new Error("a commit has a version");
  return { transaction_id: audit.nameOf(version.record.transactionId), version: toTableVersion(version) };
};

export const listTableVersions: Handler<"listTableVersions"> = async (request, catalog) => {
  return readVersions(catalog, await openBranch(catalog, request), request);
};

export const describeTableVersion: Handler<"describeTableVersion"> = async (request, catalog) => {
  const at = await openBranch(catalog, request);
  const record = await requireVersion(catalog, at, request.version);
  return { version: toTableVersion({ location: at.table.location, record }) };
};

export const batchDeleteTableVersions: Handler<"batchDeleteTableVersions"> = async (request, catalog, caller) => {
  const { store } = catalog;
  const identifier = request.id;
  const audit = prepareAudit({ caller, objects: [identifier] });
  const ranges = readRanges(request.ranges);
  const at = await openKnownBranch(catalog, request);

  let deleted_count = 0;
  for (let isDone = false; !isDone; ) {
    const isFirst = deleted_count === 0;
    deleted_count += await store.write(async (session) => {
      // Another table may have the name by now.
      await requireNotDropped(session, at.table);
      await requireRecordedBranch(session, at.table, at.branch);
      if (isFirst) await audit.record(session);
      const deleted = await deleteFirstOf(session, at, ranges);
      isDone = deleted === 0;
      return isDone ? deleteRanges(session, at, ranges) : deleted;
    });
  }
  return { context: { request_id: caller.requestId }, deleted_count, transaction_id: audit.name };
};

export const batchCreateTableVersions: Handler<"batchCreateTableVersions"> = async (request, catalog, caller) => {
  const given = request.entries.map((entry) => ({ ...entry, id: inDatabase(request, entry.id) }));
  const objects = given.map(({ id }) => id);
  requireRecordable(objects);
  const audit = prepareAudit({ caller, objects });
  const entries = await pMap(
    given,
    async (entry) => {
      const table = await requireTable(catalog.store.read, entry.id);
      return { identifier: entry.id, prepared: await prepareCommit(catalog, caller, table, entry) };
    },
    { concurrency: versionsAtOnce },
  );

  const { entries: versions } = await commitTogether(catalog, { audit, entries });
  const isRepeated = versions.every(({ record }) => record.transactionId !== audit.id);
  return {
    transaction_id: audit.nameOf(isRepeated ? (versions[0]?.record.transactionId ?? "") : audit.id),
    versions: versions.map(toTableVersion),
  };
};
