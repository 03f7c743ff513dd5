import { h } from "./dom.js";

/** @typedef {import("./api.js").Job} Job */

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
 */
export function progressBar(label) {
  const bar = h("progress", { "aria-label": label });
  const text = h("span", { class: "hint" });
  const root = h("div", { class: "progress" }, bar, text);
  return {
    root,
    bar,
    /** @param {number | undefined} done Undefined moves the bar without an end in sight. @param {number} total @param {string} words */
    set(done, total, words) {
      // A bar without an end has no value at all.
      if (done === undefined) bar.removeAttribute("value");
      else {
        bar.max = Math.max(1, total);
        bar.value = total === 0 ? 1 : Math.min(done, total);
      }
      text.textContent = words;
    },
  };
}

/** What is said of a job whose rows are not known. @type {Readonly<Record<string, string>>} */
const withoutRows = { Queued: "waiting for a runner", Running: "starting" };

/** How far a job is. @param {string} label */
export function jobProgress(label) {
  const { root, bar, set } = progressBar(label);
  return {
    root,
    /** @param {Job} job */
    update(job) {
      const { rows_committed: committed = 0, rows_total: total } = job.progress;
      bar.hidden = job.status !== "Running" && total === undefined;
      root.dataset.status = job.status.toLowerCase();
      const isOpen = job.status in withoutRows;
      const words = progressText(job) || (isOpen && job.reason) || withoutRows[job.status] || "";
      set(total === undefined ? undefined : committed, total ?? 1, words);
    },
  };
}
