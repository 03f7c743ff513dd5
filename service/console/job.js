import * as api from "./api.js";
import { may } from "./caller.js";
import { announce, confirm, copyButton, h } from "./dom.js";
import { ago, dateAndTime, nameOf } from "./format.js";
import { loaded, note, sentence } from "./list.js";
import { poll } from "./poll.js";
import { duration, jobProgress } from "./progress.js";
import { linkTo } from "./routes.js";

/**
 * @typedef {import("./api.js").Job} Job
 * @typedef {import("./format.js").Identifier} Identifier
 */

const pollEveryMs = 2_000;
export const openStatuses = ["Queued", "Running"];
/** How long a job shows no sign of a runner before that is said. */
const silentMs = 60_000;

/** @param {Job} job */
export const isOpen = ({ status }) => openStatuses.includes(status);

/** What a job does, e.g. `Fill title_length`. @param {Job} job */
export function titleOf({ operation, parameters: { column } }) {
  if (operation === "BuildTableIndex") return `Index ${column}`;
  if (column !== undefined) return `Fill ${column}`;
  if (operation.endsWith("MaterializedView")) return "Refresh the view";
  const words = operation.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/**
 * Since when a job that a runner should run shows no sign of one, in milliseconds since the epoch; undefined when
 * it does.
 *
 * @param {Job} job
 */
export function silentSince({ status, operation, attempt, heartbeat, created_at_millis: opened }) {
  if (!openStatuses.includes(status) || operation === "OpenJob") return undefined;
  const last = heartbeat === undefined || attempt === 0 ? opened : Date.parse(heartbeat);
  return Date.now() - last > silentMs ? last : undefined;
}

/** What to do about a job that no runner takes up. @param {string} title @param {number} since In milliseconds since the epoch. */
export function noRunner(title, since) {
  const command = "npm run -s tiltyard -- runner --local";
  return h(
    "div",
    { class: "note warning", role: "status" },
    h(
      "p",
      {},
      `“${title}” has waited for a runner for ${duration((Date.now() - since) / 1000)}. A runner that is at its limit `,
      "of jobs starts it later. If none is running, start one, with the catalog's URL and an admin's key in its ",
      "environment:",
    ),
    h("p", {}, h("code", {}, command), copyButton(command, "command")),
    h("p", { class: "hint" }, "docs/guides/jobs.md tells which variables these are, and how to run it on Kubernetes."),
  );
}

/** @param {string} status */
export const statusOf = (status) => h("span", { class: `status ${status.toLowerCase()}` }, status);

/** One job: how far it is, what it printed, and what can be done about it. @param {import("./main.js").PageContext} context */
export function jobPage({ id, caller, signal }) {
  const content = h(
    "div",
    { class: "page" },
    h(
      "nav",
      { class: "breadcrumb", "aria-label": "Where this is" },
      h(
        "ol",
        {},
        h("li", {}, h("a", { href: linkTo("jobs", id.slice(0, -1)) }, "Jobs")),
        h("li", {}, h("span", { class: "mono", "aria-current": "page" }, id.at(-1))),
      ),
    ),
    loaded(
      signal,
      () => api.describeJob(id, signal),
      ({ job }) => jobView(id, job, may(caller, "writer", id), signal),
    ),
  );
  return { title: `Job ${id.at(-1) ?? ""}`, content };
}

/** @param {Identifier} id @param {Job} first @param {boolean} mayChange @param {AbortSignal} signal */
function jobView(id, first, mayChange, signal) {
  let job = first;
  const [table = []] = job.objects;
  const title = titleOf(job);
  const status = h("span");
  const progress = jobProgress(`Progress of ${title}`);
  const state = h("span", { class: "hint" });
  const actions = h("div", { class: "actions-here" });
  const failure = h("p", { class: "field-error", role: "alert" });
  const advice = h("div");
  const facts = h("dl", { class: "facts" });
  const log = h("pre", { class: "log", tabindex: "0", role: "log", "aria-label": "The last lines of the log" });
  const noLog = h("p", { class: "hint" }, "The job has printed nothing yet.");

  /** @param {Job} next */
  function show(next) {
    const before = job.status;
    job = next;
    if (status.textContent !== job.status) status.replaceChildren(statusOf(job.status));
    if (before !== job.status) announce(`${title} is ${job.status.toLowerCase()} now.`);
    progress.update(job);
    facts.replaceChildren(...factsOf(job, table));
    advice.replaceChildren(...adviceOf(job));
    const hadFocus = actions.contains(document.activeElement);
    const wanted = mayChange ? actionOf(job) : undefined;
    if (actions.dataset.action !== wanted?.name) {
      actions.dataset.action = wanted?.name;
      actions.replaceChildren(...(wanted === undefined ? [] : [wanted.button]));
      if (hadFocus) (wanted?.button ?? root.querySelector("h1"))?.focus();
    }
  }

  /** @param {Job} now */
  function actionOf({ status: now }) {
    if (openStatuses.includes(now))
      return { name: "cancel", button: h("button", { type: "button", onclick: act(cancel) }, "Cancel the job") };
    if (now === "Succeeded") return undefined;
    return {
      name: "retry",
      button: h("button", { type: "button", class: "primary", onclick: act(retry) }, "Try again"),
    };
  }

  /** @param {() => Promise<void>} work */
  function act(work) {
    return async (/** @type {Event} */ event) => {
      const button = /** @type {HTMLButtonElement} */ (event.currentTarget);
      failure.textContent = "";
      button.disabled = true;
      try {
        await work();
      } catch (error) {
        failure.textContent = sentence(/** @type {Error} */ (error).message);
      }
      button.disabled = false;
    };
  }

  async function cancel() {
    const text = "What runs of it stops within seconds. Rows that it has filled stay filled.";
    if (!(await confirm({ title: `Cancel “${title}”?`, text, action: "Cancel the job", keep: "Keep it" }))) return;
    show((await api.cancelJob(id)).job);
  }

  async function retry() {
    const { job_id } = await api.retryJob(id);
    location.hash = linkTo("job", job_id.split(api.delimiterFor(id)));
  }

  async function refresh() {
    const [described, { lines }] = await Promise.all([api.describeJob(id, signal), api.describeJobLog(id, signal)]);
    show(described.job);
    const text = lines.join("\n");
    const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    if (log.textContent !== text) log.textContent = text;
    log.hidden = text === "";
    noLog.hidden = text !== "";
    noLog.textContent = isOpen(job) ? "The job has printed nothing yet." : "The job has printed nothing.";
    if (isAtEnd) log.scrollTop = log.scrollHeight;
    return isOpen(job);
  }

  log.hidden = true;
  const root = h(
    "div",
    {},
    h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, title), actions),
    h("div", { class: "job-state" }, status, progress.root, state),
    failure,
    advice,
    facts,
    h("section", { "aria-labelledby": "log-title" }, h("h2", { id: "log-title" }, "Log"), log, noLog),
  );
  show(first);
  poll({
    signal,
    everyMs: pollEveryMs,
    work: refresh,
    tell: (text) => {
      state.textContent = text;
    },
  }).now();
  return root;
}

/** The reason of a job, or what to do about it. @param {Job} job @returns {Node[]} */
function adviceOf(job) {
  const { status, reason, operation } = job;
  if (status === "Failed")
    return [h("div", { class: "problem" }, h("p", { class: "reason" }, sentence(reason ?? "it tells no reason")))];
  if (reason !== undefined) return [note(sentence(reason))];
  const since = silentSince(job);
  if (since !== undefined) return [noRunner(titleOf(job), since)];
  if (status === "Queued" && operation === "OpenJob") return [note("No runner takes this job up: its opener runs it.")];
  return [];
}

/** @param {Job} job @param {Identifier} table @returns {Node[]} */
function factsOf(job, table) {
  const heartbeat = job.heartbeat === undefined ? Number.NaN : Date.parse(job.heartbeat);
  const { column, ...parameters } = job.parameters;
  /** @type {[string, import("./dom.js").Child][]} */
  const known = [
    ["Table", h("a", { href: linkTo("table", table), class: "mono" }, nameOf(table))],
    ["Column", column && h("span", { class: "mono" }, column)],
    ["Principal", job.principal],
    ["Opened", `${dateAndTime(job.created_at_millis)}, ${ago(job.created_at_millis)}`],
    ["Ended", !isOpen(job) && `${dateAndTime(job.updated_at_millis)}, ${ago(job.updated_at_millis)}`],
    ["Attempt", job.attempt > 0 && String(job.attempt)],
    ["Heartbeat", job.status === "Running" && !Number.isNaN(heartbeat) && ago(heartbeat)],
    ...mono(parameters),
    ...mono(Object.fromEntries(Object.entries(job.result).map(([name, count]) => [name, count.toLocaleString("en")]))),
    ...mono(job.platform),
    ["Id", [h("span", { class: "mono" }, job.job_id), copyButton(job.job_id, "id")]],
    ["Request", h("span", { class: "mono" }, job.request_id)],
  ];
  return known
    .filter(([, value]) => value !== undefined && value !== false && value !== "")
    .flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
}

/** @param {Readonly<Record<string, string>>} entries @returns {[string, Node][]} */
function mono(entries) {
  return Object.entries(entries).map(([name, value]) => [name, h("span", { class: "mono" }, shortened(value))]);
}

/** @param {string} text */
function shortened(text) {
  return text.length > 300 ? `${text.slice(0, 300)}… (${text.length} characters)` : text;
}
