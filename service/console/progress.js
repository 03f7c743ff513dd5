import { html } from "./view.js";

/** @typedef {import("./calls.js").AnswerTo<"describeJob">["job"]} Job */

/** E.g. `250/1000 rows, 50 rows/s, 15 s left`, as `tiltyard jobs watch` says it; empty while nothing is known. @param {Job} job */
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
 * A bar, and beside it what it stands for in words.
 *
 * @param {string} label What the bar measures, for screen readers.
 * @param {string} words
 * @param {{ done?: number | undefined, total?: number, hidden?: boolean }} bar It moves without an end in sight while `done` is undefined.
 */
export function progressBar(label, words, { done, total = 1, hidden }) {
  // An element that once had a value keeps one: without a value it is another element.
  const bar =
    done === undefined
      ? html`<progress key="endless" aria-label=${label} hidden=${hidden} />`
      : html`<progress key="known" aria-label=${label} max=${Math.max(1, total)} value=${total === 0 ? 1 : Math.min(done, total)} />`;
  return html`<div class="progress">${bar}<span class="hint">${words}</span></div>`;
}

/** What is said of a job whose rows are not known. @type {Readonly<Record<string, string>>} */
const withoutRows = { Queued: "waiting for a runner", Running: "starting" };

/** How far a job is. @param {string} label @param {Job} job */
export function jobProgress(label, job) {
  const { rows_committed: committed = 0, rows_total: total } = job.progress;
  const isOpen = job.status in withoutRows;
  const words = progressText(job) || (isOpen && job.reason) || withoutRows[job.status] || "";
  const hidden = job.status !== "Running";
  return progressBar(label, words, total === undefined ? { hidden } : { done: committed, total });
}
