import {
  CatalogError,
  contracts,
  defaultRowsPerFragment,
  hasKind,
  mainBranch,
  nextTimeAfter,
} from "@tiltyard/protocol";
import { indexPolicyOf, type Policy, policyIn, policyNames, scheduleOf } from "../domain/policy.ts";
import { isNameable, type NewJob } from "../jobs/job.ts";
import { doesTheSame, type JobDeps, openOnce } from "../jobs/open-job.ts";
import type { Log } from "../log.ts";
import { type Automation, deleteAutomation, listAutomations, noteSeen, putAutomation } from "../store/automations.ts";
import { findDroppedTable } from "../store/dropped-tables.ts";
import { findOpenJobs } from "../store/jobs.ts";
import { findTable, findTableById, type TableRecord } from "../store/tables.ts";
import { listVersions } from "../store/versions.ts";
import { automaticJob, isObstacle, type JobPreparationDeps } from "./automatic-job.ts";
import { stateOf, type TableState } from "./table-state.ts";

/** The interval at which a due job checks for the end of a running one, which may not see the newest rows. */
const runningPollMs = 5_000;
/** The interval at which a waiting job checks whether it is still due. */
const laterPollMs = 600_000;

export interface AutomationDeps extends JobPreparationDeps, JobDeps {
  readonly log: Log;
  /** The delay between a commit and its job, so that several commits share a job. */
  readonly automationDelayMs: number;
  /** Enables the automatic refreshes of columns that ask for them. */
  readonly autoRefresh: boolean;
}

/**
 * Opens the jobs that are due after commits on a table, at most one queued job for each automation.
 *
 * @param subject The id of the table.
 * @returns The delay until the next call in milliseconds; undefined if all due jobs are open.
 */
export async function openDueJobs(deps: AutomationDeps, subject: string): Promise<number | undefined> {
  const { store, automationDelayMs, autoRefresh } = deps;
  const table = await findTableById(store.read, Number(subject));
  if (table === undefined) return undefined;
  const state = await stateOf(deps, table);
  const policy = readPolicy(deps, table);
  const waits: number[] = [];
  for (const automation of await automationsOf(deps, table, state)) {
    const { kind, target } = automation;
    // The minimum interval of a column's automatic refreshes in seconds; other automations have none.
    const interval = kind === "backfill" ? state.refreshIntervals.get(target) : undefined;
    if (interval !== undefined && !autoRefresh) continue;
    const after = dueAfter(automation, state, policy);
    if (after === undefined) {
      // The delay of its job starts at a later version.
      if (kind === "compact" || kind === "build_index")
        await store.write((session) =>
          noteSeen(session, automation, { version: state.version, fragment: automation.seenFragment }),
        );
      continue;
    }
    const page = { after, limit: 1, descending: false };
    const [cause] = await listVersions(store.read, { table, branch: mainBranch }, page);
    const nowMillis = store.read.time();
    const causedAtMillis = pastOrZero(cause?.timestampMillis ?? 0, nowMillis);
    const earliestMillis = pastOrZero(automation.sinceMillis, nowMillis) + 1_000 * (interval ?? 0);
    const schedule = scheduleOf(automation, kind === "refresh" ? await policyOfView(deps, automation) : policy);
    const opensAtMillis =
      schedule === undefined
        ? Math.max(causedAtMillis + automationDelayMs, earliestMillis)
        : nextTimeAfter(schedule, Math.max(causedAtMillis, earliestMillis));
    const left = opensAtMillis - nowMillis;
    if (left > 0) waits.push(Math.min(left, laterPollMs));
    else if (!(await openDue(deps, table, automation, { state, policy }))) waits.push(runningPollMs);
  }
  return waits.length === 0 ? undefined : Math.min(...waits);
}

/** Returns a time, or 0 for a future one: the clock of its writer was ahead, or that of the catalog was set back. */
function pastOrZero(millis: number, nowMillis: number): number {
  return millis > nowMillis ? 0 : millis;
}

/** Returns the automations of a table, including those of open backfills of externally added columns. */
async function automationsOf({ store }: AutomationDeps, { id: tableId }: TableRecord, seen: TableState) {
  const present = await listAutomations(store.read, tableId);
  const isPresent = (column: string) => present.some(({ kind, target }) => kind === "backfill" && target === column);
  const unknown = [...seen.autoBackfill, ...seen.refreshIntervals.keys()].filter((column) => !isPresent(column));
  const jobs = unknown.length === 0 ? [] : await findOpenJobs(store.read, tableId);
  for (const target of unknown) {
    // The opener of any other job of the column did not ask for its function.
    const backfill = { operation: contracts.alterTableBackfillColumns.operationId, parameters: { column: target } };
    const job = jobs.find((each) => doesTheSame(each, backfill));
    if (job === undefined) continue;
    const { principal } = job;
    await store.write((session) => putAutomation(session, { tableId, kind: "backfill", target, principal }, seen));
  }
  return present;
}

function readPolicy({ log }: AutomationDeps, { identifier, properties }: TableRecord): Policy {
  try {
    return policyIn(properties);
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error;
    log.warn({ table: identifier, problem: error.message }, "the policy of a table opens no jobs. Replace it");
    return {};
  }
}

/** Returns the policy of the view that an automation refreshes. */
async function policyOfView(deps: AutomationDeps, { target }: Automation): Promise<Policy> {
  const view = await findTableById(deps.store.read, Number(target));
  return view === undefined ? {} : readPolicy(deps, view);
}

/** Opens a due job. @returns False if an open job may miss new rows, or if too many jobs are open. */
async function openDue(
  deps: AutomationDeps,
  table: TableRecord,
  automation: Automation,
  { state, policy }: { readonly state: TableState; readonly policy: Policy },
): Promise<boolean> {
  const { store } = deps;
  let job: NewJob;
  try {
    job = await automaticJob(deps, table, automation, policy);
  } catch (error) {
    if (!isObstacle(error)) throw error;
    // A policy remains due until its job can be opened, and DescribeTablePolicy returns the reason. Other automations end
    // with their column or view, or with the role of their principal, but not with the name of a table.
    const { kind, target } = automation;
    const hasView = kind === "refresh" && !hasKind(error, "PermissionDenied") && (await hasTable(deps, Number(target)));
    if (!(kind in policyNames) && !hasView && isNameable(table.identifier))
      await store.write((session) => deleteAutomation(session, automation));
    return true;
  }
  const target = await findTable(store.read, job.table);
  const open = target && (await findOpenJobs(store.read, target.id)).find((each) => doesTheSame(each, job.opened));
  if (open?.status === "Running") return false;
  try {
    // A queued job with the same parameters replaces this job.
    await openOnce(deps, job);
  } catch (error) {
    if (hasKind(error, "InvalidTableState", "TooManyJobs")) return false;
    throw error;
  }
  await store.write((session) => noteSeen(session, automation, state, session.time()));
  return true;
}

/** Reports whether a table exists or can be undropped. */
async function hasTable({ store }: AutomationDeps, id: number): Promise<boolean> {
  return ((await findTableById(store.read, id)) ?? (await findDroppedTable(store.read, id))) !== undefined;
}

/**
 * Returns the version after which a job of an automation is due; undefined if none is due. New rows are in fragments
 * that no earlier job has seen; the commits of a job itself add none.
 */
function dueAfter(
  { kind, target, seenVersion, seenFragment }: Automation,
  { version, fragment, fragments }: TableState,
  policies: Policy,
): number | undefined {
  switch (kind) {
    case "backfill":
    case "refresh":
      return fragment > seenFragment ? seenVersion : undefined;
    case "compact": {
      const { small_fragments: most, target_rows_per_fragment: rows = defaultRowsPerFragment } =
        policies.auto_compact ?? {};
      const small = fragments.filter((each) => each.rows < rows).length;
      // Fragments skipped by one compaction are skipped by the next.
      return most !== undefined && small >= most && fragment > seenFragment ? seenVersion : undefined;
    }
    case "build_index": {
      const policy = indexPolicyOf(policies, target);
      const unseen = fragments.filter(({ id }) => id > seenFragment).length;
      return policy !== undefined && unseen >= policy.new_fragments ? seenVersion : undefined;
    }
    case "clean_up": {
      const last = seenVersion + (policies.auto_clean_up?.versions ?? Number.POSITIVE_INFINITY);
      return version >= last ? last - 1 : undefined;
    }
  }
}
