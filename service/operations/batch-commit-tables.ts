import { setImmediate } from "node:timers/promises";
import {
  type AnswerOf,
  CatalogError,
  type contracts,
  type Identifier,
  inDatabase,
  type RequestOf,
} from "@tiltyard/protocol";
import { commitTogether, type Entry } from "../commits/commit.ts";
import { deleteRanges, readRanges } from "../commits/ranges.ts";
import { openKnownBranch, toTableVersion } from "../commits/read.ts";
import { recordVersion } from "../commits/record.ts";
import { branchOf, requireRecordedBranch, requireTable } from "../domain/require.ts";
import { prepareAudit, requireRecordable } from "../domain/transaction.ts";
import type { Location } from "../storage/location.ts";
import { toPath } from "../store/path.ts";
import type { Session } from "../store/store.ts";
import type { LocatedVersion } from "../store/versions.ts";
import { deregisterTable } from "../tables/drop.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";
import { prepareCommit } from "./prepare-commit.ts";
import { prepareDeclaration } from "./table.ts";

/** The maximum length of the properties that the answer of a batch returns, as JSON. */
const returnedLengthMax = 1024 * 1024;
/** The number of operations that are prepared in one turn of the event loop. */
const operationsInTurn = 100;
type Request = RequestOf<typeof contracts.batchCommitTables>;
type Operation = Request["operations"][number];
type Result = AnswerOf<typeof contracts.batchCommitTables>["results"][number];
type Member<Name extends keyof Operation> = NonNullable<Operation[Name]>;

export const batchCommitTables: Handler<"batchCommitTables"> = async (request, catalog, caller) => {
  const objects = request.operations.map((operation) => identifierOf(operation, request));
  requireRecordable(objects);
  const audit = prepareAudit({ caller, objects });
  const steps = await prepareSteps(request, catalog, caller);
  const entries = steps.flatMap(({ entry }) => entry ?? []);

  let outcomes: (Result | LocatedVersion)[] = [];
  const committed = await commitTogether(catalog, {
    audit,
    entries,
    apply: async (session) => {
      outcomes = [];
      let returnedLength = 0;
      for (const { apply } of steps) {
        if (apply === undefined) continue;
        const outcome = await apply(session, audit.id);
        outcomes.push(outcome);
        returnedLength += "record" in outcome ? 0 : JSON.stringify(outcome.deregister_table?.properties ?? {}).length;
        if (returnedLength > returnedLengthMax)
          throw new CatalogError(
            "InvalidInput",
            `operations: the tables to deregister have more than ${returnedLengthMax} characters of properties: deregister them in several batches`,
          );
      }
      await audit.record(session);
      return outcomes.filter((outcome) => "record" in outcome);
    },
    locking: request.operations.some((operation) => operation.declare_table) ? "tables" : undefined,
  });
  catalog.worker.wake();

  const placedBefore = committed.entries.map(versionResult);
  const placedAfter = [...committed.applied];
  const results = steps.map(({ entry }): Result => {
    const outcome = entry === undefined ? outcomes.shift() : placedBefore.shift();
    if (outcome === undefined) throw new Error("each operation of a batch has an outcome");
    if (!("record" in outcome)) return outcome;
    return versionResult(placedAfter.shift() ?? outcome);
  });
  return { transaction_id: audit.name, results };
};

function versionResult(located: LocatedVersion): Result {
  return { create_table_version: { version: toTableVersion(located) } };
}

interface Step {
  readonly entry?: Entry;
  /** Applies the operation at the commit point. @returns The result, or a version to place afterwards. */
  readonly apply?: (session: Session, transactionId: string) => Promise<Result | LocatedVersion>;
}

/** Prepares the operations of a batch in order. Each one sees the changes of its predecessors. */
async function prepareSteps(request: Request, catalog: Catalog, caller: AuthorizedCaller): Promise<readonly Step[]> {
  /** The paths of the tables that the batch has changed so far, with the locations of those that it declares. */
  const changed = new Map<string, Location | undefined>();

  async function declare(id: Identifier, request: Member<"declare_table">): Promise<Step> {
    const { vend_credentials = false } = request;
    const { location, record, answer } = await prepareDeclaration(
      { ...request, id, vend_credentials },
      catalog,
      caller,
    );
    changed.set(toPath(id), location);
    return {
      apply: async (session) => {
        await record(session);
        return { declare_table: answer };
      },
    };
  }

  async function createVersion(identifier: Identifier, request: Member<"create_table_version">): Promise<Step> {
    const location = changed.get(toPath(identifier));
    const table = location === undefined ? await requireTable(catalog.store.read, identifier) : { location };
    const prepared = await prepareCommit(catalog, caller, table, request);
    if (!changed.has(toPath(identifier))) return { entry: { identifier, prepared } };
    // The batch itself creates the state that this version follows.
    const following = { ...prepared, base: undefined };
    return {
      apply: async (session, transactionId) => {
        const record = await recordVersion(session, await requireTable(session, identifier), following, transactionId);
        return { location: prepared.location, record };
      },
    };
  }

  async function deleteVersions(identifier: Identifier, request: Member<"delete_table_versions">): Promise<Step> {
    const branch = branchOf(request);
    const ranges = readRanges(request.ranges);
    const path = toPath(identifier);
    if (!changed.has(path)) {
      await openKnownBranch(catalog, { id: identifier, branch });
      changed.set(path, undefined);
    }
    return {
      apply: async (session) => {
        const table = await requireTable(session, identifier);
        await requireRecordedBranch(session, table, branch);
        return { delete_table_versions: { deleted_count: await deleteRanges(session, { table, branch }, ranges) } };
      },
    };
  }

  function deregister(identifier: Identifier): Step {
    changed.set(toPath(identifier), undefined);
    return {
      apply: async (session) => {
        const table = await requireTable(session, identifier);
        await deregisterTable(session, table);
        const { location, properties } = table;
        return { deregister_table: { id: identifier, location: location.uri, properties } };
      },
    };
  }

  const steps: Step[] = [];
  for (const [index, operation] of request.operations.entries()) {
    if (index > 0 && index % operationsInTurn === 0) await setImmediate();
    const id = identifierOf(operation, request);
    const { declare_table, create_table_version, delete_table_versions, deregister_table } = operation;
    if (declare_table) steps.push(await declare(id, declare_table));
    if (create_table_version) steps.push(await createVersion(id, create_table_version));
    if (delete_table_versions) steps.push(await deleteVersions(id, delete_table_versions));
    if (deregister_table) steps.push(deregister(id));
  }
  return steps;
}

function identifierOf(operation: Operation, request: Request): Identifier {
  return inDatabase(request, Object.values(operation).find((member) => member !== undefined)?.id ?? []);
}
