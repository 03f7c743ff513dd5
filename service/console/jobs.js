import { call } from "./calls.js";
import { delimiterFor } from "./contracts.js";
import { Filtered } from "./filters.js";
import { nameOf } from "./format.js";
import { endedStatuses, isOpen, noRunner, openStatuses, silentSince, titleOf } from "./job.js";
import { useState } from "./libraries/hooks.js";
import { Pages, usePages, usePoll, useTitle } from "./loading.js";
import { jobProgress } from "./progress.js";
import { linkTo } from "./routes.js";
import { announce, empty, hint, html, mono, section, statusOf, table, time } from "./view.js";

/**
 * @typedef {import("./progress.js").Job} Job
 * @typedef {import("./format.js").Identifier} Identifier
 */

const pollEveryMs = 3_000;
const openMax = 100;
const endedPage = 20;

/** The page of running, waiting and ended jobs. @param {import("./main.js").PageProps} props */
export function JobsPage({ id, caller }) {
  useTitle("Jobs");
  const show = (/** @type {import("./filters.js").Chosen} */ { namespace, filter }, /** @type {number} */ key) =>
    html`<${JobList} key=${key} namespace=${namespace} filter=${filter} />`;
  return html`<h1 tabindex="-1">Jobs</h1><${Filtered} id=${id} caller=${caller} show=${show} />`;
}

/**
 * Lists the jobs of a namespace: the open ones, which are updated live, and the ended ones.
 *
 * @param {{ namespace: Identifier, filter: { table?: string, principal?: string } }} props
 */
export function JobList({ namespace, filter }) {
  const idOf = (/** @type {Job} */ job) => job.job_id.split(delimiterFor(namespace));
  const [open, setOpen] = useState(/** @type {readonly Job[]} */ ([]));
  const ended = usePages(
    async (page, signal) => {
      if (page.page_token === undefined) await refresh(signal);
      return call("listJobs", { id: namespace, ...filter, status: endedStatuses, limit: endedPage, ...page }, signal);
    },
    (answer) => answer.jobs,
  );

  /** Reads the open jobs and the results of those that are no longer open. @param {AbortSignal} signal */
  async function refresh(signal) {
    const request = { id: namespace, ...filter, status: openStatuses, limit: openMax };
    const { jobs } = await call("listJobs", request, signal);
    const gone = open.filter(({ job_id: id }) => jobs.every((job) => job.job_id !== id));
    const described = await Promise.all(gone.map((job) => call("describeJob", { id: idOf(job) }, signal)));
    const over = described.map(({ job }) => job);
    setOpen(jobs);
    // A job may end while the first page of ended jobs is read.
    if (over.length > 0)
      ended.update((items) => [...over, ...items.filter((item) => over.every(({ job_id: id }) => item.job_id !== id))]);
    for (const job of over) announce(`${titleOf(job)} is ${job.status.toLowerCase()} now.`);
    return true;
  }
  const wrong = usePoll({ everyMs: pollEveryMs, isOn: ended.items !== undefined, work: refresh });

  const grid = (/** @type {readonly Job[]} */ jobs, /** @type {string} */ caption, /** @type {string} */ when) =>
    table(
      ["Status", "Job", "Progress", "Principal", when],
      jobs.map((job) => ({
        key: job.job_id,
        cells: [
          statusOf(job.status),
          html`<div><a href=${linkTo("job", idOf(job))}>${titleOf(job)}</a><br /><small class="mono">${nameOf(job.objects[0] ?? [])}</small></div>`,
          jobProgress(`Progress of ${idOf(job).at(-1)}`, job),
          mono(job.principal),
          time(isOpen(job) ? job.created_at_millis : job.updated_at_millis),
        ],
      })),
      { caption, class: "jobs" },
    );
  const showEnded = (/** @type {readonly Job[]} */ jobs) =>
    grid(jobs, "Jobs that have ended, the latest first", "Ended");
  const silent = open.findLast((job) => silentSince(job) !== undefined);
  // A running job proves that a runner exists, which may have reached its limit.
  const hasRunner = open.some((job) => job.attempt > 0 && silentSince(job) === undefined);
  const pages = html`<${Pages} pages=${ended} show=${showEnded} empty=${() => (open.length > 0 ? hint("No job has ended yet.") : noJobs(namespace))} more="Show older jobs" />`;
  const isAny = open.length > 0 || (ended.items?.length ?? 0) > 0;
  return html`
    <p class="hint" role="status">${wrong}</p>
    ${
      open.length > 0 &&
      section(
        "Running and waiting",
        html`${silent !== undefined && !hasRunner && noRunner(titleOf(silent), silentSince(silent) ?? 0)}
          ${grid(open, "Jobs that run or wait, the latest first", "Opened")}`,
      )
    }
    <section aria-labelledby="section-ended">
      ${isAny && html`<h2 id="section-ended">Ended</h2>`}${pages}
    </section>`;
}

/** @param {Identifier} namespace */
const noJobs = (namespace) =>
  empty(html`<p>No jobs.</p>
    ${hint(html`A job fills a computed column or refreshes a view. To open one, choose “Fill” in the schema of a <a href=${linkTo("tables", namespace)}>table</a>, or send`)}
    <p><code>POST /v1/table/{id}/backfill_column {"column": …}</code></p>`);
