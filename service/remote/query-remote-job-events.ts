import { CatalogError, isOpen, parseIdentifier } from "@tiltyard/protocol";
import { requireJob } from "../domain/require.ts";
import type { Handler } from "../operations/handler.ts";
import { rowsAsStream } from "../rows/arrow/arrow-rows.ts";
import { type AttemptRecord, listAttempts } from "../store/job-attempts.ts";
import type { JobRecord } from "../store/jobs.ts";
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

/** Lists the events of a job: its opening, its attempts and its end. */
export const queryRemoteJobEvents: Handler<"queryRemoteJobEvents"> = async (
  { job_id, delimiter, limit, filter },
  { store },
) => {
  const isMeant = readFilter(filter);
  const job = await requireJob(store.read, parseIdentifier(job_id, delimiter));
  const events = eventsOf(job, await listAttempts(store.read, job.id));
  return rowsAsStream(columns, events.filter(isMeant).slice(0, limit));
};

function eventsOf(job: JobRecord, attempts: readonly AttemptRecord[]): readonly Event[] {
  const { status, progress, principal } = job;
  const opened = {
    ...{ state: "queued", updated_by: principal, emitted_from: placeOf(job), emitted_by: principal },
    ...{ claim_entity: "", rows_processed: 0, timestamp_millis: job.createdAtMillis },
  };
  const runner = { ...opened, updated_by: "runner", emitted_by: "runner" };
  const claims = attempts.map((attempt) => ({
    ...runner,
    ...{ state: "claim", emitted_from: placeOf(attempt), claim_entity: `attempt ${attempt.number}` },
    rows_processed: attempt.number === job.attempt ? (progress.rows_committed ?? 0) : 0,
    timestamp_millis: attempt.claimedAtMillis,
  }));
  const last = claims.at(-1) ?? runner;
  const ended = { ...last, state: remoteState[status].toLowerCase(), timestamp_millis: job.endedAtMillis ?? 0 };
  return [opened, ...claims, ...(isOpen(job) ? [] : [ended])];
}

function placeOf({ platform }: Pick<AttemptRecord, "platform">): string {
  return platform.ray_job ?? platform.ray_address ?? "";
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
