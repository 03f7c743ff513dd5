import { CatalogError, type Job, parseIdentifier, type remoteContracts } from "@tiltyard/protocol";
import { toJob } from "../domain/job-summary.ts";
import { requireJob } from "../domain/require.ts";
import type { Handler } from "../operations/handler.ts";
import { rowsAsStream } from "../rows/arrow/arrow-rows.ts";
import { isOpen } from "../store/jobs.ts";
import { remoteState } from "./job-state.ts";

/** The columns in LanceDB's documentation, with the time of each event. */
const columns = {
  state: "text",
  updated_by: "text",
  emitted_from: "text",
  emitted_by: "text",
  claim_entity: "text",
  rows_processed: "integer",
  timestamp_millis: "integer",
} as const;
type Event = { readonly [Name in keyof typeof columns]: string | number };

const filterPattern = /^\s*(\w+)\s*=\s*'((?:[^']|'')*)'\s*$/;

/** Lists the events of a job: its start, its latest attempt and its end. Jobs store their current state and no history. */
export const queryRemoteJobEvents: Handler<typeof remoteContracts.queryRemoteJobEvents> = async (
  { job_id, delimiter, limit, filter },
  { store },
) => {
  const isMeant = readFilter(filter);
  const job = toJob(await requireJob(store.read, parseIdentifier(job_id, delimiter)), delimiter);
  return rowsAsStream(columns, eventsOf(job).filter(isMeant).slice(0, limit));
};

function eventsOf(job: Job): readonly Event[] {
  const { status, attempt, heartbeat, progress, principal, platform } = job;
  const where = platform.ray_job ?? platform.ray_address ?? "";
  const by = { updated_by: principal, emitted_from: where, emitted_by: principal, claim_entity: "", rows_processed: 0 };
  const runner = { ...by, updated_by: "runner", emitted_by: "runner" };
  const claim = { ...runner, claim_entity: `attempt ${attempt}`, rows_processed: progress.rows_committed ?? 0 };
  return [
    { ...by, state: "queued", timestamp_millis: job.created_at_millis },
    ...(heartbeat === undefined ? [] : [{ ...claim, state: "claim", timestamp_millis: Date.parse(heartbeat) || 0 }]),
    ...(isOpen(job)
      ? []
      : [{ ...claim, state: remoteState[status].toLowerCase(), timestamp_millis: job.updated_at_millis }]),
  ];
}

/** Parses a filter. @throws CatalogError InvalidInput */
function readFilter(filter: string | undefined): (event: Event) => boolean {
  if (filter === undefined) return () => true;
  const [, column = "", value = ""] = filterPattern.exec(filter) ?? [];
  const isColumn = (name: string): name is keyof Event => name in columns;
  if (!isColumn(column))
    throw new CatalogError("InvalidInput", `filter: must be one column and its value, such as "state = 'claim'"`);
  return (event) => String(event[column]) === value.replaceAll("''", "'");
}
