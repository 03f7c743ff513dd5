import { type Identifier, mainBranch } from "@tiltyard/protocol";
import type { CommitDeps } from "../commits/deps.ts";
import { readManifest, requireVersion } from "../commits/read.ts";
import { automationOf } from "../domain/policy.ts";
import { requireTable } from "../domain/require.ts";
import type { Origin } from "../domain/transaction.ts";
import { autoBackfillColumns } from "../geneva/virtual-column.ts";
import type { Fragment } from "../lance/manifest.ts";
import { type Automation, putAutomation, type Seen } from "../store/automations.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { noteTask } from "../store/tasks.ts";
import { refreshIntervalOf } from "./auto-refresh.ts";

/** The state of the latest version of `main` for automations. */
export interface TableState extends Seen {
  readonly fragments: readonly Fragment[];
  /** The columns to backfill after new rows. Of the columns that one function fills together, only the first is listed. */
  readonly autoBackfill: readonly string[];
  /** The minimum intervals in seconds between two refreshes of the columns that ask for them. */
  readonly refreshIntervals: ReadonlyMap<string, number>;
}

/** Returns the state of the latest version. @throws CatalogError TableVersionNotFound, Unsupported */
export async function stateOf(deps: CommitDeps, table: TableRecord): Promise<TableState> {
  const latest = await requireVersion(deps, { table, branch: mainBranch }, undefined);
  return readManifest(deps, table, latest, async (manifest) => {
    const { columnMetadata: columns, highestFragment } = manifest;
    const intervals = [...columns].map(([name, metadata]) => [name, refreshIntervalOf(metadata)] as const);
    return {
      version: latest.version,
      fragment: highestFragment,
      fragments: await manifest.readFragments(),
      autoBackfill: autoBackfillColumns(columns),
      refreshIntervals: new Map(intervals.flatMap(([name, each]) => (each === undefined ? [] : [[name, each]]))),
    };
  });
}

/**
 * Prepares automations for new rows of a table. Existing rows are excluded.
 *
 * @returns A function that registers an automation in the database transaction of its cause.
 * @throws CatalogError TableNotFound, TableVersionNotFound, Unsupported
 */
export async function prepareForNewRows(deps: CommitDeps, identifier: Identifier, { principal }: Origin) {
  const seen = await stateOf(deps, await requireTable(deps.store.read, identifier));
  return async (session: Session, automation: Pick<Automation, "kind" | "target">): Promise<void> => {
    const { id } = await requireTable(session, identifier);
    await putAutomation(session, { tableId: id, ...automation, principal: principal.name }, seen);
    // A commit since `seen` did not know of the automation.
    await noteTask(session, automationOf(id));
  };
}
