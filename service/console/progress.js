import { html } from "./view.js";

/** @typedef {import("./calls.js").AnswerTo<"describeJob">["job"]} Job */

/** Returns a text such as `250/1000 rows, 50 rows/s, 15 s left`, in the format of `tiltyard jobs watch`; empty while nothing is known. @param {Job} job */
export function progressText({ status, progress }) {
  const { rows_committed: committed = 0, rows_total: total, rows_per_second: rate } = progress;
  if (total === undefined) return "";
  const isRunning = status === "Running" && rate !== undefined && rate > 0;
  const left = isRunning ? [`${rate} rows/s`, `${duration((total - committed) / rate)} left`] : [];
  return [`${committed}/${total} rows`, ...left].join(", ");
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 120) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * Renders a bar with a text beside it.
 *
 * @param {string} label The description of the bar for screen readers.
 * @param {string} words
 * @param {{ done?: number | undefined, total?: number, hidden?: boolean }} bar The bar is indeterminate while `done` is undefined.
 */
export function progressBar(label, words, { done, total = 1, hidden }) {
  // The keys differ because an element keeps the value that it once had.
  const bar =
    done === undefined
      ? html`<progress key="endless" aria-label=${label} hidden=${hidden} />`
      : html`<progress key="known" aria-label=${label} max=${Math.max(1, total)} value=${total === 0 ? 1 : Math.min(done, total)} />`;
  return html`<div class="progress">${bar}<span class="hint">${words}</span></div>`;
}

/** The text for a job whose number of rows is unknown. @type {Readonly<Record<string, string>>} */
const withoutRows = { Queued: "waiting for a runner", Running: "starting" };

/** Renders the progress of a job. @param {string} label @param {Job} job */
export function jobProgress(label, job) {
  const { rows_committed: committed = 0, rows_total: total } = job.progress;
  const isOpen = job.status in withoutRows;
  const words = progressText(job) || (isOpen && job.reason) || withoutRows[job.status] || "";
  const hidden = job.status !== "Running";
  return progressBar(label, words, total === undefined ? { hidden } : { done: committed, total });
}
