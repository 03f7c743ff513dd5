import type { JobSummary } from "./job.ts";

/** The stages of a backfill and the counters of their times, which are sums over all workers. */
const stages = {
  plan: "plan_millis",
  read: "read_millis",
  compute: "compute_millis",
  checkpoint: "checkpoint_millis",
  write: "write_millis",
  commit: "commit_millis",
} as const;

/** Returns the kind of the object of a job. Only the registration of a Function has no table. */
export function objectKind({ operation }: Pick<JobSummary, "operation">): "function" | "table" {
  return operation === "CreateFunction" ? "function" : "table";
}

/** Reports whether the client that opened a job executes it, instead of a runner. */
export function isOfClient({ operation }: Pick<JobSummary, "operation">): boolean {
  return operation === "OpenJob";
}

/** Returns the title of a job, such as `Fill title_length`. */
export function jobTitle({ operation, column }: Pick<JobSummary, "operation" | "column">): string {
  if (operation === "BuildTableIndex") return `Index ${column}`;
  if (column !== undefined) return `Fill ${column}`;
  if (operation.endsWith("MaterializedView")) return "Refresh the view";
  const words = operation.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/**
 * Returns a text such as `250/1,000 rows, 50 rows/s, 15 s left, 4 workers; compute 12 s, commit 1 s`; empty while nothing
 * is known. Times of stages are sums over all workers.
 */
export function progressText({ status, progress }: Pick<JobSummary, "status" | "progress">): string {
  const { rows_total: total, rows_per_second: rate = 0, workers_active: active, workers_pending = 0 } = progress;
  if (total === undefined) return "";
  const isRunning = status === "Running";
  const left =
    isRunning && rate > 0
      ? [`${counted(rate)} rows/s`, `${durationText((total - rowsDone(progress)) / rate)} left`]
      : [];
  const pending = workers_pending === 0 ? "" : ` and ${workers_pending} pending`;
  const workers = isRunning && active !== undefined ? [`${active} workers${pending}`] : [];
  const rows = [rowsText(progress), ...left, ...workers].join(", ");
  return [rows, stagesText(progress)].filter((text) => text !== "").join("; ");
}

/** Returns a text such as `no progress for 45 min`; empty for a job that has not stalled. */
export function stallText({ stalled_since_millis: since }: Pick<JobSummary, "stalled_since_millis">): string {
  return since === undefined ? "" : `no progress for ${durationText((Date.now() - since) / 1000)}`;
}

/** Returns `paused` for a paused job. */
export function pauseText({ paused_at_millis: since }: Pick<JobSummary, "paused_at_millis">): string {
  return since === undefined ? "" : "paused";
}

/** Returns a text such as `position 3 in the queue, high priority`; empty for a job that does not wait for a runner. */
export function queueText({
  queue_position: position,
  priority,
}: Pick<JobSummary, "queue_position" | "priority">): string {
  if (position === undefined) return "";
  return `position ${counted(position)} in the queue${priority === "normal" ? "" : `, ${priority} priority`}`;
}

/** Returns a text about the rows of a job, followed by its pause, its stall or its position in the queue. */
export function withState(
  rows: string,
  job: Parameters<typeof pauseText>[0] & Parameters<typeof stallText>[0] & Parameters<typeof queueText>[0],
): string {
  return [rows, pauseText(job), stallText(job), queueText(job)].filter((text) => text !== "").join("; ");
}

/** Returns a count such as `250/1,000 rows`. A job whose rows all have values already has none to compute. */
export function rowsText(progress: JobSummary["progress"]): string {
  const { rows_total = 0 } = progress;
  return rows_total === 0 ? "no rows to compute" : `${counted(rowsDone(progress))}/${counted(rows_total)} rows`;
}

const counted = (count: number) => count.toLocaleString("en");

/** Returns the number of computed rows. Rows in checkpoints are computed, but not committed yet. */
export function rowsDone({
  rows_committed = 0,
  rows_checkpointed = 0,
  rows_total = 0,
}: JobSummary["progress"]): number {
  return Math.max(rows_committed, Math.min(rows_checkpointed, rows_total));
}

function stagesText(progress: JobSummary["progress"]): string {
  const times = Object.entries(stages).flatMap(([stage, counter]) => {
    const millis = progress[counter] ?? 0;
    return millis > 0 ? [`${stage} ${durationText(millis / 1000)}`] : [];
  });
  const retries = progress.commit_retries ?? 0;
  return [...times, ...(retries > 0 ? [`commit retries: ${retries}`] : [])].join(", ");
}

/** Returns a rounded duration such as `15 s`, `3 min` or `2 h 5 min`. */
export function durationText(seconds: number): string {
  if (seconds < 120) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
