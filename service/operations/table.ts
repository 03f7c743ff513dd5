import {
  CatalogError,
  checkIdentifier,
  type contracts,
  formatIdentifier,
  type Identifier,
  mainBranch,
  type RequestOf,
  renamedTo,
} from "@tiltyard/protocol";
import pMap from "p-map";
import { isAllowed, withRole } from "../auth/authorize.ts";
import { adoptTable } from "../commits/adopt.ts";
import { readContent } from "../commits/bases.ts";
import { versionsAtOnce } from "../commits/commit.ts";
import { listBranches } from "../commits/discover.ts";
import { isWritten, openBranchOf, requireVersion } from "../commits/read.ts";
import { noteAutomations } from "../domain/policy.ts";
import { branchOf, requireFreeName, requireTable } from "../domain/require.ts";
import { makeAudited, prepareAudit } from "../domain/transaction.ts";
import { requireNoOpenJob } from "../jobs/job.ts";
import { versionAsked } from "../refs/tags.ts";
import type { ReadRequest } from "../rows/reader.ts";
import type { Location } from "../storage/location.ts";
import type { Session } from "../store/store.ts";
import { findTable, renameTable as rename, type TableRecord } from "../store/tables.ts";
import { findView } from "../store/views.ts";
import { claimBases, requireNoLinks } from "../tables/bases.ts";
import { deregisterTable as deregister, dropTable as drop } from "../tables/drop.ts";
import { recordTable } from "../tables/new-table.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";
import { recordedIndices } from "./table-index.ts";

export const declareTable: Handler<"declareTable"> = async (request, catalog, caller) => {
  const { record, answer } = await prepareDeclaration(request, catalog, caller);
  const change = { caller, objects: [request.id] };
  const transaction = await makeAudited(catalog.store, change, record, { locking: "tables" });
  return { ...transaction, ...answer };
};

/** Prepares a table without versions. @returns Also the function that records it at the commit point. */
export async function prepareDeclaration(
  request: Omit<RequestOf<typeof contracts.declareTable>, "delimiter" | "indexName">,
  catalog: Catalog,
  caller: AuthorizedCaller,
) {
  const { id: identifier, properties = {} } = request;
  const location = catalog.locations.requested(request.location, identifier, caller.principal);
  const vended = await vendCredentials(catalog, caller, identifier, location, request);
  return {
    location,
    answer: { location: location.uri, ...vended, properties, managed_versioning: true },
    record: (session: Session) =>
      recordTable(session, { identifier, location, properties }, caller, withRole(caller.principal, "writer")),
  };
}

export const registerTable: Handler<"registerTable"> = async (request, catalog, caller) => {
  const { store, storage, locations, worker } = catalog;
  const { id: identifier, mode = "Create", properties = {} } = request;
  const location = locations.requested(request.location, identifier, caller.principal);
  const audit = prepareAudit({ caller, objects: [identifier] });
  const branches = await listBranches(storage, location);
  if (branches.size === 0) throw new CatalogError("InvalidInput", `location: no Lance table exists at ${location.uri}`);
  const manifests = [...branches].flatMap(([branch, found]) => found.map(({ name }) => ({ branch, name })));
  const basesOf = async (manifest: (typeof manifests)[number]) =>
    (await readContent(catalog, { ...manifest, location })).foreign;
  const all = (await pMap(manifests, basesOf, { concurrency: versionsAtOnce })).flat();
  // Most versions have files in the same folders.
  const bases = [...new Map(all.map((base) => [base.uri, base])).values()];
  await requireNoLinks(storage, bases);

  const table = await store.write(
    async (session) => {
      const present = mode === "Overwrite" ? await findTable(session, identifier) : undefined;
      if (present !== undefined) await deregister(session, present);
      await audit.record(session);
      const recorded = await recordTable(
        session,
        { identifier, location, properties },
        caller,
        withRole(caller.principal, "writer"),
      );
      await claimBases(session, { locations, table: recorded, principal: caller.principal }, bases);
      return recorded;
    },
    { locking: "tables" },
  );
  worker.wake();
  // The table exists from now on. Its versions are adopted like those of any writer outside the catalog.
  await adoptTable(catalog, table, branches, audit.id);
  return { transaction_id: audit.name, location: location.uri, properties };
};

export const describeTable: Handler<"describeTable"> = async (request, catalog, caller) => {
  const { store } = catalog;
  const table = await requireTable(store.read, request.id);
  const at = await versionAsked(catalog, table, request);
  const opened = await openBranchOf(catalog, { table, branch: branchOf(at) });
  if (at.version !== undefined) await requireVersion(catalog, opened, at.version);
  const isOnlyDeclared =
    request.check_declared || request.load_detailed_metadata ? !(await isWritten(catalog, opened)) : undefined;
  // Geneva's clients read the definition of a view from the properties of its table.
  const { definition } = (table.isView ? await findView(store.read, table.id) : undefined) ?? {};
  return {
    table: request.id.at(-1) ?? formatIdentifier(request.id),
    namespace: request.id.slice(0, -1),
    version: at.version,
    location: table.location.uri,
    ...((request.with_table_uri || request.load_detailed_metadata) && { table_uri: table.location.uri }),
    ...(await vendCredentials(catalog, caller, request.id, table.location, request)),
    ...(isOnlyDeclared === false &&
      request.load_detailed_metadata &&
      (await detailsOf(catalog, { ...at, id: request.id, caller }))),
    properties: { ...table.properties, ...definition },
    managed_versioning: true,
    is_only_declared: isOnlyDeclared,
  };
};

/**
 * Vends credentials for the folder of a table, for responses with its location. They allow writing if the caller may
 * write the table, and reading otherwise. Requests receive them unless they decline them.
 *
 * @throws CatalogError ServiceUnavailable, InvalidInput
 */
async function vendCredentials(
  { credentials }: Catalog,
  { principal }: AuthorizedCaller,
  identifier: Identifier,
  location: Location,
  { vend_credentials = true }: { readonly vend_credentials?: boolean | undefined },
): Promise<{ readonly storage_options?: Record<string, string> }> {
  if (credentials === undefined || !vend_credentials) return {};
  const vend = await credentials(location);
  if (vend === undefined) return {};
  const access = isAllowed(principal, { role: "writer", object: identifier }) ? "write" : "read";
  return { storage_options: await vend({ location, access, principal: principal.name }) };
}

/** Returns the fields that need the dataset. A table that is only declared has none of them. */
async function detailsOf({ rows }: Catalog, at: ReadRequest) {
  const { version, result } = await rows.read("details", at, {});
  const { schema, summary } = result;
  return {
    version,
    schema,
    stats: {
      num_deleted_rows: Number(summary.total_deletion_file_rows ?? 0),
      num_fragments: Number(summary.total_fragments ?? 0),
    },
    metadata: summary,
  };
}

export const tableExists: Handler<"tableExists"> = async (request, catalog) => {
  const table = await requireTable(catalog.store.read, request.id);
  if (request.version !== undefined) await requireVersion(catalog, { table, branch: mainBranch }, request.version);
};

export const dropTable: Handler<"dropTable"> = ({ id }, catalog, caller) =>
  remove(id, catalog, caller, (session, table) => drop(session, table, catalog.dropRetentionMs));

export const deregisterTable: Handler<"deregisterTable"> = ({ id }, catalog, caller) =>
  remove(id, catalog, caller, deregister);

/** Removes a table from the catalog, in one database transaction with its audit record. */
async function remove(
  identifier: Identifier,
  { store, worker }: Catalog,
  caller: AuthorizedCaller,
  removeIn: (session: Session, table: TableRecord) => Promise<void>,
) {
  const audit = prepareAudit({ caller, objects: [identifier] });
  const table = await store.write(async (session) => {
    const found = await requireTable(session, identifier);
    await removeIn(session, found);
    await audit.record(session);
    return found;
  });
  worker.wake();
  const { location, properties } = table;
  return { transaction_id: audit.name, id: identifier, location: location.uri, properties };
}

export const renameTable: Handler<"renameTable"> = async (request, { store }, caller) => {
  const identifier = request.id;
  const renamed = checkIdentifier(renamedTo(request));
  const work = async (session: Session) => {
    const table = await requireTable(session, identifier);
    await requireFreeName(session, renamed);
    await requireNoOpenJob(session, table);
    await rename(session, table.id, renamed);
    // A view may have its source again.
    await noteAutomations(session, table.id);
  };
  return makeAudited(store, { caller, objects: [identifier, renamed] }, work, { locking: "jobs" });
};

export const restoreTable: Handler<"restoreTable"> = async (request, { rows }, caller) =>
  (await rows.change("restore", { request, caller }, { version: request.version })).transaction;

export const getTableStats: Handler<"getTableStats"> = async (request, catalog, caller) => {
  const { version, result } = await catalog.rows.read("stats", { ...request, caller }, {});
  const { totalBytes, numRows, fragmentStats } = result;
  const recorded = await recordedIndices(catalog, { ...request, version, caller });
  const { numFragments, numSmallFragments, lengths } = fragmentStats;
  return {
    total_bytes: totalBytes,
    num_rows: numRows,
    num_indices: Math.max(result.numIndices, recorded.length),
    fragment_stats: { num_fragments: numFragments, num_small_fragments: numSmallFragments, lengths },
  };
};
