import { delimiterFor, describeJob, listJobs } from "./api.js";
import { announce, h } from "./dom.js";
import { filtered } from "./filters.js";
import { ago, dateAndTime, nameOf } from "./format.js";
import { noRunner, openStatuses, silentSince, statusOf, titleOf } from "./job.js";
import { empty, grid, paged } from "./list.js";
import { poll } from "./poll.js";
import { jobProgress } from "./progress.js";
import { linkTo } from "./routes.js";

/**
 * @typedef {import("./api.js").Job} Job
 * @typedef {import("./format.js").Identifier} Identifier
 */

const pollEveryMs = 3_000;
const openMax = 100;
const endedPage = 20;

/** What runs, waits and has ended. @param {import("./main.js").PageContext} context */
export function jobsPage(context) {
  const content = h(
    "div",
    { class: "page" },
    h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, "Jobs")),
    filtered(context, [], jobList),
  );
  return { title: "Jobs", content };
}

/**
 * The jobs of a namespace: the open ones, which move, and those that have ended.
 *
 * @param {{ namespace: Identifier, filter: { table?: string, principal?: string }, signal: AbortSignal }} options
 */
export function jobList({ namespace, filter, signal }) {
  const delimiter = delimiterFor(namespace);
  const idOf = (/** @type {Job} */ job) => job.job_id.split(delimiter);
  /** @type {Map<string, ReturnType<typeof jobRow>>} */
  const open = new Map();
  const openBody = h("tbody");
  const endedBody = h("tbody");
  const endedTable = gridOf(endedBody, "Jobs that have ended, the latest first", "Ended");
  const state = h("p", { class: "hint", role: "status" });
  const warning = h("div");
  const running = h(
    "section",
    { "aria-labelledby": "open-jobs", hidden: true },
    h("h2", { id: "open-jobs" }, "Running and waiting"),
    warning,
    gridOf(openBody, "Jobs that run or wait, the latest first", "Opened"),
  );

  /** A job may end while the first page of those that have ended is read. @type {Set<string>} */
  const seen = new Set();
  const ended = paged({
    signal,
    load: async (page_token) => {
      if (page_token === undefined) await refresh();
      const status = "Succeeded,Failed,Canceled";
      const { jobs, page_token: next } = await listJobs(namespace, {
        ...filter,
        status,
        page_token,
        limit: endedPage,
        signal,
      });
      return { items: jobs, next };
    },
    frame: endedTable,
    into: endedBody,
    row: endedRow,
    empty: () =>
      open.size > 0
        ? noneEnded()
        : empty(
            h("p", {}, "No jobs."),
            h(
              "p",
              { class: "hint" },
              "A job fills a computed column or refreshes a view. To open one, choose “Fill” in the schema of a ",
              h("a", { href: linkTo("tables", namespace) }, "table"),
              ", or send",
            ),
            h("p", {}, h("code", {}, 'POST /v1/table/{id}/backfill_column {"column": …}')),
          ),
    more: "Show older jobs",
  });
  const title = h("h2", { id: "ended-jobs", hidden: true }, "Ended");
  const endedSection = h("section", { "aria-labelledby": "ended-jobs" }, title, ended);
  const noneEnded = () => h("p", { class: "hint none-ended" }, "No job has ended yet.");

  /** @param {Job} job */
  function endedRow(job) {
    if (seen.has(job.job_id)) return [];
    seen.add(job.job_id);
    title.hidden = false;
    const row = jobRow(idOf(job), job.updated_at_millis);
    row.update(job);
    return [row.element];
  }

  /** Shows the open jobs as they are, and those that are open no more with the others. */
  async function refresh() {
    const status = openStatuses.join(",");
    const { jobs } = await listJobs(namespace, { ...filter, status, limit: openMax, signal });
    const now = new Map(jobs.map((job) => [job.job_id, job]));
    for (const [name, row] of [...open]) {
      if (now.has(name)) continue;
      const { job } = await describeJob(row.id, signal);
      open.delete(name);
      row.element.remove();
      endedBody.prepend(...endedRow(job));
      if (!endedTable.isConnected) ended.replaceChildren(endedTable);
      announce(`${titleOf(job)} is ${job.status.toLowerCase()} now.`);
    }
    for (const job of jobs.toReversed()) {
      const known = open.get(job.job_id);
      const row = known ?? jobRow(idOf(job), job.created_at_millis);
      row.update(job);
      if (known === undefined) openBody.prepend(row.element);
      open.set(job.job_id, row);
    }
    running.hidden = open.size === 0;
    title.hidden = open.size === 0 && seen.size === 0;
    if (open.size > 0 && ended.querySelector(".empty") !== null) ended.replaceChildren(noneEnded());
    const silent = jobs.findLast((job) => silentSince(job) !== undefined);
    // One that runs is the sign that a runner is there, and may be at its limit.
    const hasRunner = jobs.some((job) => job.attempt > 0 && silentSince(job) === undefined);
    warning.replaceChildren(
      ...(silent === undefined || hasRunner ? [] : [noRunner(titleOf(silent), silentSince(silent) ?? 0)]),
    );
    return true;
  }

  poll({
    signal,
    everyMs: pollEveryMs,
    work: async () => (ended.querySelector(".loading, .problem") === null ? refresh() : true),
    tell: (text) => {
      state.textContent = text;
    },
  });
  return h("div", { class: "jobs" }, state, running, endedSection);
}

/** @param {HTMLElement} body @param {string} caption @param {string} when */
function gridOf(body, caption, when) {
  return grid(["Status", "Job", "Progress", "Principal", when], body, { caption, class: "jobs-grid" });
}

/** @param {Identifier} id @param {number} at When it was opened, or has ended. */
function jobRow(id, at) {
  const status = h("td", { "data-label": "Status" });
  const job = h("td", { "data-label": "Job" });
  const principal = h("td", { "data-label": "Principal", class: "mono" });
  const opened = h("time", { datetime: new Date(at).toISOString(), title: dateAndTime(at) });
  const progress = jobProgress(`Progress of ${id.at(-1)}`);
  const element = h(
    "tr",
    {},
    status,
    job,
    h("td", { "data-label": "Progress" }, progress.root),
    principal,
    h("td", { "data-label": "When" }, opened),
  );
  return {
    id,
    element,
    /** @param {Job} next */
    update(next) {
      const [table = []] = next.objects;
      if (status.textContent !== next.status) status.replaceChildren(statusOf(next.status));
      if (!job.hasChildNodes())
        job.append(
          h(
            "div",
            { class: "job-name" },
            h("a", { href: linkTo("job", id) }, titleOf(next)),
            h("span", { class: "hint mono" }, nameOf(table)),
          ),
        );
      principal.textContent = next.principal;
      opened.textContent = ago(at);
      progress.update(next);
    },
  };
}
