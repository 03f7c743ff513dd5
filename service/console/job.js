import { may } from "./caller.js";
import { call } from "./calls.js";
import { delimiterFor, transactionStatuses } from "./contracts.js";
import { ago, dateAndTime, nameOf } from "./format.js";
import { useLayoutEffect, useRef, useState } from "./libraries/hooks.js";
import { shown, useAction, useLoaded, usePoll, useTitle } from "./loading.js";
import { duration, jobProgress } from "./progress.js";
import { linkTo } from "./routes.js";
import { breadcrumb } from "./shell.js";
import {
  announce,
  confirm,
  copyButton,
  facts,
  failure,
  hint,
  html,
  mono,
  monoEntries,
  note,
  section,
  sentence,
  statusOf,
} from "./view.js";

/**
 * @typedef {import("./progress.js").Job} Job
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {import("./view.js").Children} Children
 * @typedef {Job["status"]} Status
 */

const pollEveryMs = 2_000;
/** The time without a sign of a runner after which a warning appears. */
const silentMs = 60_000;
const shownMax = 300;

/** @type {Status[]} */
export const openStatuses = ["Queued", "Running"];
export const endedStatuses = transactionStatuses.filter((status) => !openStatuses.includes(status));

/** @param {{ readonly status: Status }} job */
export const isOpen = ({ status }) => openStatuses.includes(status);

/** Returns the title of a job, such as `Fill title_length`. @param {Job} job */
export function titleOf({ operation, parameters: { column } }) {
  if (operation === "BuildTableIndex") return `Index ${column}`;
  if (column !== undefined) return `Fill ${column}`;
  if (operation.endsWith("MaterializedView")) return "Refresh the view";
  const words = operation.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/**
 * Returns the time since which a job shows no sign of a runner, in milliseconds since the epoch; undefined if a runner
 * executes it or none is needed.
 *
 * @param {Job} job
 */
export function silentSince(job) {
  const { operation, attempt, heartbeat, created_at_millis: opened } = job;
  if (!isOpen(job) || operation === "OpenJob") return undefined;
  const last = heartbeat === undefined || attempt === 0 ? opened : Date.parse(heartbeat);
  return Date.now() - last > silentMs ? last : undefined;
}

/** Renders the recommendation for a job that no runner claims. @param {string} title @param {number} since The milliseconds since the epoch. */
export function noRunner(title, since) {
  const command = "npx tiltyard runner --local";
  return html`<div class="box warning" role="status">
    <p>“${title}” has waited for a runner for ${duration((Date.now() - since) / 1000)}. A runner that is at its limit
      of jobs starts it later. If none is running, start one, with the catalog's URL and a key with the role runner in its
      environment:</p>
    <p><code>${command}</code>${copyButton(command, "command")}</p>
    ${hint("docs/guides/jobs.md tells which variables these are, and how to run it on Kubernetes.")}
  </div>`;
}

/** The page of a job with its progress, its output and its possible actions. @param {import("./main.js").PageProps} props */
export function JobPage({ id, caller }) {
  useTitle(`Job ${id.at(-1) ?? ""}`);
  const described = useLoaded((signal) => call("describeJob", { id }, signal));
  return html`${breadcrumb([["Jobs", linkTo("jobs", id.slice(0, -1))], [mono(id.at(-1))]])}
    ${shown(described, ({ job }) => html`<${JobView} id=${id} first=${job} mayChange=${may(caller, "writer", id)} />`)}`;
}

/** @param {{ id: Identifier, first: Job, mayChange: boolean }} props */
function JobView({ id, first, mayChange }) {
  const [job, setJob] = useState(first);
  const [lines, setLines] = useState(/** @type {readonly string[]} */ ([]));
  const { run, failed } = useAction();
  const title = titleOf(job);

  /** @param {Job} next */
  function show(next) {
    if (next.status !== job.status) announce(`${title} is ${next.status.toLowerCase()} now.`);
    setJob(next);
  }
  const wrong = usePoll({
    everyMs: pollEveryMs,
    isNow: true,
    work: async (signal) => {
      const [described, log] = await Promise.all([
        call("describeJob", { id }, signal),
        call("describeJobLog", { id }, signal),
      ]);
      show(described.job);
      setLines(log.lines);
      return isOpen(described.job);
    },
  });

  async function cancel() {
    const text = "What runs of it stops within seconds. Rows that it has filled stay filled.";
    if (!(await confirm({ title: `Cancel “${title}”?`, text, action: "Cancel the job", keep: "Keep it" }))) return;
    show((await call("cancelJob", { id })).job);
  }
  async function retry() {
    const { job_id } = await call("retryJob", { id });
    location.hash = linkTo("job", job_id.split(delimiterFor(id)));
  }
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  const button = useRef(/** @type {HTMLElement | null} */ (null));
  const hadFocus = button.current !== null && button.current === document.activeElement;
  useLayoutEffect(() => {
    if (hadFocus && button.current === null) heading.current?.focus();
  });
  const action = isOpen(job)
    ? html`<button ref=${button} type="button" class="outline" onClick=${() => run(cancel)}>Cancel the job</button>`
    : job.status !== "Succeeded" &&
      html`<button ref=${button} type="button" onClick=${() => run(retry)}>Try again</button>`;

  return html`
    <div class="heading"><h1 ref=${heading} tabindex="-1">${title}</h1>${mayChange && action}</div>
    <div class="heading">${statusOf(job.status)}${jobProgress(`Progress of ${title}`, job)}<span class="hint">${wrong}</span></div>
    ${failure(failed)}
    ${adviceOf(job)}
    ${factsOf(job)}
    ${section(
      "Log",
      lines.length > 0
        ? html`<${Log} text=${lines.join("\n")} />`
        : hint(isOpen(job) ? "The job has printed nothing yet." : "The job has printed nothing."),
    )}`;
}

/** Shows a log that scrolls to its end while it grows, unless the user has scrolled. @param {{ text: string }} props */
function Log({ text }) {
  const log = useRef(/** @type {HTMLElement | null} */ (null));
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (isAtEnd.current) log.current?.scrollTo({ top: log.current.scrollHeight });
  }, [text]);
  const onScroll = (/** @type {Event} */ { currentTarget: pre }) => {
    if (pre instanceof Element) isAtEnd.current = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
  };
  return html`<pre ref=${log} class="log" tabindex="0" role="log" aria-label="The last lines of the log" onScroll=${onScroll}>${text}</pre>`;
}

/** Renders the reason of a job or a recommendation. @param {Job} job @returns {Children} */
function adviceOf(job) {
  const { status, reason, operation } = job;
  if (status === "Failed")
    return html`<div class="box problem"><p class="reason">${sentence(reason ?? "it tells no reason")}</p></div>`;
  if (reason !== undefined) return note(sentence(reason));
  const since = silentSince(job);
  if (since !== undefined) return noRunner(titleOf(job), since);
  return status === "Queued" && operation === "OpenJob" && note("No runner takes this job up: its opener runs it.");
}

/** @param {Job} job */
function factsOf(job) {
  const [table = []] = job.objects;
  const { column, ...parameters } = job.parameters;
  const heartbeat = Date.parse(job.heartbeat ?? "");
  const at = (/** @type {number} */ millis) => `${dateAndTime(millis)}, ${ago(millis)}`;
  const shortened = Object.entries(parameters).map(([name, text]) => [
    name,
    text.length > shownMax ? `${text.slice(0, shownMax)}… (${text.length} characters)` : text,
  ]);
  const result = Object.entries(job.result).map(([name, count]) => [name, count.toLocaleString("en")]);
  return facts([
    ["Table", html`<a href=${linkTo("table", table)} class="mono">${nameOf(table)}</a>`],
    ["Column", column && mono(column)],
    ["Principal", job.principal],
    ["Opened", at(job.created_at_millis)],
    ["Ended", !isOpen(job) && at(job.updated_at_millis)],
    ["Attempt", job.attempt > 0 && String(job.attempt)],
    ["Heartbeat", job.status === "Running" && !Number.isNaN(heartbeat) && ago(heartbeat)],
    ...monoEntries(Object.fromEntries(shortened)),
    ...monoEntries(Object.fromEntries(result)),
    ...monoEntries(job.platform),
    ["Id", html`${mono(job.job_id)}${copyButton(job.job_id, "id")}`],
    ["Request", mono(job.request_id)],
  ]);
}
