import { CatalogError, contracts, defaultDelimiter } from "@tiltyard/protocol";
import type { CommitParts } from "../commits/parts.ts";
import { checkBackfill } from "../dataset/columns.ts";
import type { Datasets } from "../dataset/datasets.ts";
import { mainBranch } from "../domain/branch.ts";
import { type NewJob, prepareJob } from "../domain/job.ts";
import { prepareRefresh } from "../domain/materialized-view.ts";
import { openOnce } from "../domain/open-job.ts";
import type { Actor } from "../domain/transaction.ts";
import { type Automation, deleteAutomation, listAutomations, noteSeen, type Seen } from "../store/automations.ts";
import { findOpenJobs } from "../store/jobs.ts";
import { findTableById, type TableRecord } from "../store/tables.ts";
import { listVersions } from "../store/versions.ts";
import { seenOf } from "./register.ts";

/** How long a job that runs is waited for: it may not see the newest rows. */
const runningPollMs = 5_000;

export interface AutomationParts extends CommitParts {
  readonly datasets: Datasets;
  /** How long after a commit jobs are opened, so that several commits make one job. */
  readonly automationDelayMs: number;
}

/**
 * Opens the jobs that new rows of a table are for, at most one that waits for each column and view. New are those in
 * fragments that no job before has seen: what a job itself does to rows that are there adds none.
 *
 * @param subject The id of the table.
 * @returns When to look again, in milliseconds; undefined when all new rows have their jobs.
 */
export async function openDueJobs(parts: AutomationParts, subject: string): Promise<number | undefined> {
  const { store, automationDelayMs } = parts;
  const table = await findTableById(store.read, Number(subject));
  if (table === undefined) return undefined;
  const automations = await listAutomations(store.read, table.id);
  if (automations.length === 0) return undefined;
  const now = await seenOf(parts, table);
  const due = automations.filter(({ seen }) => seen.fragment < now.fragment);
  const waits: number[] = [];
  for (const automation of due) {
    const page = { after: automation.seen.version, limit: 1, descending: false };
    const [first] = await listVersions(store.read, table.id, mainBranch, page);
    const left = (first?.timestampMillis ?? 0) + automationDelayMs - Date.now();
    if (left > 0) waits.push(Math.min(left, automationDelayMs));
    else if (!(await openDue(parts, table, automation, now))) waits.push(runningPollMs);
  }
  return waits.length === 0 ? undefined : Math.min(...waits);
}

/** @returns false while a job is open that may leave new rows out: it runs already, or has other parameters. */
async function openDue(
  parts: AutomationParts,
  table: TableRecord,
  automation: Automation,
  now: Seen,
): Promise<boolean> {
  const { store } = parts;
  const job = await jobOf(parts, table, automation);
  if (job === undefined) {
    await store.write((session) => deleteAutomation(session, automation));
    return true;
  }
  const { operation, objects, properties } = job.opened;
  const open = (await findOpenJobs(store.read, objects[0] ?? [])).find(
    (each) => each.operation === operation && each.properties.column === properties.column,
  );
  if (open?.status === "Running") return false;
  try {
    // One that waits, with the same parameters, is it.
    await openOnce(store, job);
  } catch (error) {
    if (error instanceof CatalogError && error.kind === "ConcurrentModification") return false;
    throw error;
  }
  await store.write((session) => noteSeen(session, automation, now));
  return true;
}

/** @returns undefined when what is to be brought up to date is gone. */
async function jobOf(
  { store, datasets }: AutomationParts,
  table: TableRecord,
  { kind, target, principal }: Automation,
): Promise<NewJob | undefined> {
  const caller: Actor = { principal: { name: principal }, requestId: "" };
  if (kind === "refresh") {
    const view = await findTableById(store.read, Number(target));
    return view && prepareRefresh(view, { id: view.identifier, delimiter: defaultDelimiter }, caller);
  }
  let stored: Awaited<ReturnType<typeof checkBackfill>>;
  try {
    stored = await checkBackfill(datasets, { id: table.identifier, column: target });
  } catch (error) {
    if (error instanceof CatalogError && ["TableColumnNotFound", "InvalidInput"].includes(error.kind)) return undefined;
    throw error;
  }
  const contract = contracts.alterTableBackfillColumns;
  return prepareJob({ contract, caller, objects: [table.identifier], properties: { column: target, ...stored } });
}
