import type { contracts, Identifier, RequestOf, ResponseOf } from "@tiltyard/protocol";
import type { Entry } from "../commits/commit-together.ts";
import { prepareVersion } from "../commits/prepare.ts";
import { deleteRanges, readRanges } from "../commits/ranges.ts";
import { requireKnownBranch } from "../commits/read.ts";
import { recordVersion } from "../commits/record.ts";
import { branchOf } from "../domain/branch.ts";
import { recordTable } from "../domain/new-table.ts";
import { requireRecordedBranch, requireTable } from "../domain/require.ts";
import { vendCredentials } from "../domain/vending.ts";
import { deregisterTable } from "../dropping/drop.ts";
import { toPath } from "../store/path.ts";
import type { Session } from "../store/store.ts";
import type { LocatedVersion } from "../store/versions.ts";
import { type AuthorizedCaller, type Catalog, mayWrite } from "./handler.ts";
import { requireCommitAllowed } from "./require-commit-allowed.ts";

export type Operation = RequestOf<typeof contracts.batchCommitTables>["operations"][number];
export type Result = ResponseOf<typeof contracts.batchCommitTables>["results"][number];
type Member<Name extends keyof Operation> = NonNullable<Operation[Name]>;

/** One operation of the batch, which was prepared before any change. */
export interface Step {
  /** A version that is placed before the commit point. */
  readonly entry?: Entry;
  /** Applies the operation at the commit point. @returns The result, or a version to place afterwards. */
  readonly apply?: (session: Session, transactionId: string) => Promise<Result | LocatedVersion>;
}

/** Prepares the operations of a batch in order. Each one sees the changes of its predecessors. */
export async function prepareSteps(
  operations: readonly Operation[],
  catalog: Catalog,
  caller: AuthorizedCaller,
): Promise<readonly Step[]> {
  /** The paths of the tables that the batch has changed so far, with the locations of those that it declares. */
  const changed = new Map<string, string | undefined>();
  const steps: Step[] = [];
  for (const operation of operations) {
    const identifier = identifierOf(operation);
    const { declare_table, create_table_version, delete_table_versions, deregister_table } = operation;
    if (declare_table) steps.push(await declare(identifier, declare_table, catalog, caller, changed));
    if (create_table_version)
      steps.push(await createVersion(identifier, create_table_version, catalog, caller, changed));
    if (delete_table_versions) steps.push(await deleteVersions(identifier, delete_table_versions, catalog, changed));
    if (deregister_table) steps.push(deregister(identifier));
    if (delete_table_versions || deregister_table) changed.set(toPath(identifier), undefined);
  }
  return steps;
}

async function declare(
  identifier: Identifier,
  { location: asked, properties = {}, vend_credentials = false }: Member<"declare_table">,
  catalog: Catalog,
  caller: AuthorizedCaller,
  changed: Map<string, string | undefined>,
): Promise<Step> {
  const { locations } = catalog;
  const location =
    asked === undefined ? locations.choose(identifier) : locations.requested(asked, identifier, caller.principal);
  changed.set(toPath(identifier), location.uri);
  const vended = await vendCredentials(catalog, caller, identifier, location.uri, { vend_credentials });
  return {
    apply: async (session) => {
      await recordTable(session, { identifier, location, properties }, caller, mayWrite(caller));
      return { declare_table: { location: location.uri, ...vended, properties, managed_versioning: true } };
    },
  };
}

async function createVersion(
  identifier: Identifier,
  request: Member<"create_table_version">,
  catalog: Catalog,
  caller: AuthorizedCaller,
  changed: ReadonlyMap<string, string | undefined>,
): Promise<Step> {
  const location = changed.get(toPath(identifier));
  const table = location === undefined ? await requireTable(catalog.store.read, identifier) : { location };
  const prepared = await prepareVersion(catalog, table, request);
  await requireCommitAllowed(catalog, caller, table, prepared);
  if (!changed.has(toPath(identifier))) return { entry: { identifier, prepared } };
  // The batch itself creates the state that this version follows.
  return {
    apply: async (session, transactionId) => {
      const { location } = prepared;
      const present = await requireTable(session, identifier);
      return {
        location,
        record: await recordVersion(session, present, { ...prepared, base: undefined }, transactionId),
      };
    },
  };
}

async function deleteVersions(
  identifier: Identifier,
  request: Member<"delete_table_versions">,
  catalog: Catalog,
  changed: ReadonlyMap<string, string | undefined>,
): Promise<Step> {
  const branch = branchOf(request);
  const ranges = readRanges(request.ranges);
  if (!changed.has(toPath(identifier)))
    await requireKnownBranch(catalog, await requireTable(catalog.store.read, identifier), branch);
  return {
    apply: async (session) => {
      const table = await requireTable(session, identifier);
      await requireRecordedBranch(session, table, branch);
      return { delete_table_versions: { deleted_count: await deleteRanges(session, table.id, branch, ranges) } };
    },
  };
}

function deregister(identifier: Identifier): Step {
  return {
    apply: async (session) => {
      const table = await requireTable(session, identifier);
      await deregisterTable(session, table);
      const { location, properties } = table;
      return { deregister_table: { id: [...identifier], location, properties: { ...properties } } };
    },
  };
}

export function identifierOf(operation: Operation): Identifier {
  return Object.values(operation).find((member) => member !== undefined)?.id ?? [];
}
