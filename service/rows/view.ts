import { CatalogError, type TableVersion } from "@tiltyard/protocol";
import type { CommitDeps } from "../commits/deps.ts";
import { openBranchOf, readVersions, requireVersion, toTableVersion } from "../commits/read.ts";
import type { Commits, NewTable } from "../commits/series.ts";
import { branchOf } from "../domain/require.ts";
import type { TableRecord } from "../store/tables.ts";
import type { TableView } from "./gateway.ts";

/** Returns a view of one version without commits, as the latest one. @param onOpen Fails an opening by its error. */
export function viewOfVersion(
  deps: CommitDeps,
  table: TableRecord,
  branch: string,
  pinned: TableVersion,
  onOpen: () => Promise<void> = async () => {},
): TableView {
  const view = viewOfTable(deps, table, undefined);
  const isPinned = (request: { readonly branch?: string | undefined }) => branchOf(request) === branch;
  return {
    ...view,
    listTableVersions: async (request) => {
      if (!isPinned(request)) return view.listTableVersions(request);
      await onOpen();
      return { versions: [pinned] };
    },
    describeTableVersion: async (request) => {
      if (!isPinned(request) || request.version !== pinned.version) return view.describeTableVersion(request);
      await onOpen();
      return { version: pinned };
    },
  };
}

/** Returns a view of a table with its held-back versions. Without `commits`, it rejects commits. */
export function viewOfTable(deps: CommitDeps, table: TableRecord | NewTable, commits: Commits | undefined): TableView {
  // For a table, the library uses the options of the description instead of those of the connection.
  const describe = async () => {
    const { libraryOptions } = await deps.storage.at(table.location);
    return {
      location: table.location.uri,
      storage_options: libraryOptions,
      properties: {},
      managed_versioning: true,
    };
  };
  return {
    declareTable: describe,
    describeTable: describe,
    listTableVersions: async (request) => {
      const latest = commits?.held.at(-1);
      if (latest !== undefined) return { versions: [latest] };
      if (!("id" in table)) return { versions: [] };
      const at = await openBranchOf(deps, { table, branch: branchOf(request) });
      return readVersions(deps, at, request);
    },
    describeTableVersion: async (request) => {
      const held = commits?.held.find(({ version }) => version === request.version);
      if (held !== undefined) return { version: held };
      if (!("id" in table)) throw new CatalogError("TableVersionNotFound", "the table has no version yet");
      const record = await requireVersion(deps, { table, branch: branchOf(request) }, request.version);
      return { version: toTableVersion({ location: table.location, record }) };
    },
    createTableVersion: async (request) => {
      if (commits === undefined) throw new CatalogError("InvalidInput", "this request only reads");
      return commits.commit(request);
    },
    hold: () => commits?.hold(),
  };
}
