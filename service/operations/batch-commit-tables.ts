import { contracts } from "@tiltyard/protocol";
import { commitTogether } from "../commits/commit-together.ts";
import { toTableVersion } from "../commits/read.ts";
import { prepareAudit } from "../domain/audit.ts";
import type { LocatedVersion, VersionRecord } from "../store/versions.ts";
import { identifierOf, prepareSteps, type Result } from "./batch-steps.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.batchCommitTables;

export const batchCommitTables: Handler<"batchCommitTables"> = async (request, catalog, caller) => {
  const objects = request.operations.map(identifierOf);
  const audit = prepareAudit({ contract, request, caller, objects });
  const steps = await prepareSteps(request.operations, catalog, caller);
  const entries = steps.flatMap(({ entry }) => entry ?? []);

  let outcomes: (Result | LocatedVersion)[] = [];
  const committed = await commitTogether(catalog, {
    audit,
    entries,
    apply: async (session) => {
      outcomes = [];
      for (const { apply } of steps) if (apply !== undefined) outcomes.push(await apply(session, audit.id));
      await audit.record(session);
      return outcomes.filter((outcome) => "record" in outcome);
    },
    locking: request.operations.some((operation) => operation.declare_table) ? "tables" : undefined,
  });
  catalog.worker.wake();

  const placedBefore = committed.entries.map((record, index) =>
    versionResult(entries[index]?.prepared.location ?? "", record),
  );
  const placedAfter = [...committed.applied];
  const results = steps.map(({ entry }): Result => {
    const outcome = entry === undefined ? outcomes.shift() : placedBefore.shift();
    if (outcome === undefined) throw new Error("each operation of a batch has an outcome");
    if (!("record" in outcome)) return outcome;
    return versionResult(outcome.location, placedAfter.shift() ?? outcome.record);
  });
  return { transaction_id: audit.name, results };
};

function versionResult(location: string, record: VersionRecord): Result {
  return { create_table_version: { version: toTableVersion(location, record) } };
}
