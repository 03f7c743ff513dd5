import { contracts, formatIdentifier, type Identifier, type RequestOf, type ResponseOf } from "@tiltyard/protocol";
import pMap from "p-map";
import { prepareAudit } from "../domain/audit.ts";
import { branchOf } from "../domain/branch.ts";
import { requireFreeLocation } from "../domain/locations.ts";
import { requireBranch, requireFreeName, requireTable } from "../domain/require.ts";
import { inTurns } from "../domain/turns.ts";
import { vendCredentials } from "../domain/vending.ts";
import { deleteRanges, readRanges } from "../domain/version-ranges.ts";
import { finishCommit, insertPrepared, prepareVersion, toTableVersion, versionsAtOnce } from "../domain/versions.ts";
import type { Session } from "../store/store.ts";
import { deleteTable, insertTable } from "../store/tables.ts";
import type { Caller, Catalog, Handler } from "./handler.ts";

const contract = contracts.batchCommitTables;

type Operation = RequestOf<typeof contract>["operations"][number];
type Result = ResponseOf<typeof contract>["results"][number];
type Member<Name extends keyof Operation> = NonNullable<Operation[Name]>;

/**
 * One operation of the batch, in three parts: it was prepared before the database
 * transaction, it is applied in it, and what it returns makes its result after the commit.
 */
type Step = (session: Session, transactionId: string) => Promise<() => Result | Promise<Result>>;

export const batchCommitTables: Handler<typeof contract> = async (request, catalog, caller) => {
  const objects = request.operations.map(identifierOf);
  const audit = prepareAudit({ contract, request, caller, objects });
  const steps = await prepareSteps(request.operations, catalog, caller);

  const applied = await catalog.store.write(
    async (session) => {
      const results = [];
      for await (const step of inTurns(steps)) results.push(await step(session, audit.id));
      await audit.record(session);
      return results;
    },
    { locking: request.operations.some((operation) => operation.declare_table) ? "tables" : undefined },
  );
  const results = await pMap(applied, (result) => result(), { concurrency: versionsAtOnce });
  return { transaction_id: audit.name, results };
};

async function prepareSteps(
  operations: readonly Operation[],
  catalog: Catalog,
  caller: Caller,
): Promise<readonly Step[]> {
  /** The locations of tables that the batch itself declares: a later operation may commit to them. */
  const declared = new Map<string, string>();
  const steps: Step[] = [];
  for await (const operation of inTurns(operations)) {
    const identifier = identifierOf(operation);
    const { declare_table, create_table_version, delete_table_versions, deregister_table } = operation;
    if (declare_table) steps.push(await declare(identifier, declare_table, catalog, caller, declared));
    if (create_table_version) steps.push(await createVersion(identifier, create_table_version, catalog, declared));
    if (delete_table_versions) steps.push(deleteVersions(identifier, delete_table_versions));
    if (deregister_table) steps.push(deregister(identifier));
  }
  return steps;
}

async function declare(
  identifier: Identifier,
  { location: asked, properties = {}, vend_credentials = false }: Member<"declare_table">,
  catalog: Catalog,
  caller: Caller,
  declared: Map<string, string>,
): Promise<Step> {
  const { locations } = catalog;
  const location = asked === undefined ? locations.choose(identifier) : locations.read(asked);
  declared.set(formatIdentifier(identifier), location.uri);
  const vended = await vendCredentials(catalog, caller, identifier, location.uri, { vend_credentials });
  return async (session) => {
    await requireFreeName(session, identifier);
    await requireFreeLocation(session, location);
    await insertTable(session, { identifier, location: location.uri, properties });
    return () => ({ declare_table: { location: location.uri, ...vended, properties, managed_versioning: true } });
  };
}

async function createVersion(
  identifier: Identifier,
  request: Member<"create_table_version">,
  catalog: Catalog,
  declared: ReadonlyMap<string, string>,
): Promise<Step> {
  const location = declared.get(formatIdentifier(identifier));
  const table = location === undefined ? await requireTable(catalog.store.read, identifier) : { location };
  const prepared = await prepareVersion(catalog, table, request);
  return async (session, transactionId) => {
    const record = await insertPrepared(session, await requireTable(session, identifier), prepared, transactionId);
    return async () => {
      const finished = await finishCommit(catalog, prepared.location, record);
      return { create_table_version: { version: toTableVersion(prepared.location, finished) } };
    };
  };
}

function deleteVersions(identifier: Identifier, request: Member<"delete_table_versions">): Step {
  const branch = branchOf(request);
  const ranges = readRanges(request.ranges);
  return async (session) => {
    const table = await requireTable(session, identifier);
    await requireBranch(session, table, branch);
    const deleted_count = await deleteRanges(session, table.id, branch, ranges);
    return () => ({ delete_table_versions: { deleted_count } });
  };
}

function deregister(identifier: Identifier): Step {
  return async (session) => {
    const { id, location, properties } = await requireTable(session, identifier);
    await deleteTable(session, id);
    return () => ({ deregister_table: { id: [...identifier], location, properties: { ...properties } } });
  };
}

function identifierOf(operation: Operation): Identifier {
  return Object.values(operation).find((member) => member !== undefined)?.id ?? [];
}
