import { progressText, rowsDone, withState } from "@tiltyard/protocol";
import type { JobSummary } from "./api.ts";

/** A bar with a text beside it. */
export function ProgressBar({
  label,
  words,
  done,
  total = 1,
  hidden,
}: {
  /** The description of the bar for screen readers. */
  readonly label: string;
  readonly words: string;
  /** The bar is indeterminate while `done` is undefined. */
  readonly done?: number;
  readonly total?: number;
  readonly hidden?: boolean;
}) {
  return (
    <div class="progress">
      {/* The keys differ because an element keeps the value that it once had. */}
      {done === undefined ? (
        <progress key="endless" aria-label={label} hidden={hidden} />
      ) : (
        <progress
          key="known"
          aria-label={label}
          max={Math.max(1, total)}
          value={total === 0 ? 1 : Math.min(done, total)}
        />
      )}
      <span class="hint">{words}</span>
    </div>
  );
}

/** The text for a job whose number of rows is unknown. */
const withoutRows: Readonly<Record<string, string>> = { Queued: "waiting for a runner", Running: "starting" };

/** The progress of a job. */
export function JobProgress({ label, job }: { readonly label: string; readonly job: JobSummary }) {
  const { rows_total: total } = job.progress;
  const isOpen = job.status in withoutRows;
  const rows = progressText(job) || (isOpen && job.reason) || withoutRows[job.status] || "";
  const words = withState(rows, job);
  return (
    <ProgressBar
      label={label}
      words={words}
      hidden={job.status !== "Running"}
      {...(total === undefined ? {} : { done: rowsDone(job.progress), total })}
    />
  );
}
