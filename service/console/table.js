import * as api from "./api.js";
import { may } from "./caller.js";
import { data } from "./data.js";
import { announce, copyButton, h, icon } from "./dom.js";
import { ago, bytes, dateAndTime, day, nameOf, timeOfDay } from "./format.js";
import { jobList } from "./jobs.js";
import { empty, grid, loaded, note, paged, sentence } from "./list.js";
import { linkTo } from "./routes.js";
import { schema } from "./schema.js";
import { breadcrumb } from "./shell.js";
import { transactionList } from "./transactions.js";

/**
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {import("./main.js").PageContext} PageContext
 */

const pageSize = 50;
const mainBranch = "main";

/** @type {readonly (readonly [string, string, (context: PageContext) => Node])[]} */
const tabs = [
  ["history", "History", history],
  ["schema", "Schema", schema],
  ["data", "Data", data],
  ["tags", "Tags", tags],
  ["jobs", "Jobs", jobs],
  ["transactions", "Transactions", transactions],
  ["details", "Details", details],
];

/** One table: its versions, columns, rows, tags, jobs and transactions. @param {PageContext} context */
export function tablePage(context) {
  const { id, caller } = context;
  const title = id.at(-1) ?? "";
  const [key, label, show] = tabs.find(([name]) => name === context.tab) ?? tabs[0] ?? ["", "", details];
  const links = tabs.map(([name, text]) =>
    h("a", { href: linkTo("table", id, name), "aria-current": name === key && "page" }, text),
  );
  const content = h(
    "div",
    { class: "page" },
    breadcrumb(id, caller),
    h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, title)),
    h("nav", { class: "tabs", "aria-label": `Parts of ${title}` }, links),
    h("section", { "aria-label": label }, show(context)),
  );
  return { title: `${title}: ${label.toLowerCase()}`, content };
}

// ----- History

/** @param {PageContext} context */
function history({ id, signal }) {
  const load = () => Promise.all([api.listBranches(id, signal), api.listTags(id, signal)]);
  return loaded(signal, load, ([branches, tagsByName]) => {
    const timeline = h("div", {});
    const names = [
      mainBranch,
      ...Object.keys(branches)
        .filter((name) => name !== mainBranch)
        .sort(),
    ];
    const buttons = names.map((name) =>
      h("button", { type: "button", class: "branch", "aria-pressed": "false", onclick: () => choose(name) }, name),
    );
    let leaving = new AbortController();

    /** @param {string} name */
    function choose(name) {
      leaving.abort();
      leaving = new AbortController();
      const both = AbortSignal.any([signal, leaving.signal]);
      for (const [index, button] of buttons.entries())
        button.setAttribute("aria-pressed", String(names[index] === name));
      const from = branches[name];
      timeline.replaceChildren(
        ...(from === undefined
          ? []
          : [
              h("p", { class: "hint" }, `Made from ${from.parentBranch ?? mainBranch}, version ${from.parentVersion}.`),
            ]),
        versionsOf(id, name, tagsOf(tagsByName, name), both),
      );
    }
    choose(mainBranch);
    return h(
      "div",
      {},
      h(
        "div",
        { class: "branches", role: "group", "aria-label": "Branches" },
        h("span", { class: "hint" }, "Branch"),
        buttons,
      ),
      timeline,
    );
  });
}

/** @param {api.Tags} tagsByName @param {string} branch @returns {ReadonlyMap<number, readonly string[]>} */
function tagsOf(tagsByName, branch) {
  const here = Object.entries(tagsByName).filter(([, tag]) => (tag.branch ?? mainBranch) === branch);
  return new Map(
    here.map(([, { version }]) => [version, here.filter(([, tag]) => tag.version === version).map(([name]) => name)]),
  );
}

/**
 * The versions of a branch as a line through time, the latest first, with a heading for each day.
 *
 * @param {Identifier} id
 * @param {string} branch
 * @param {ReadonlyMap<number, readonly string[]>} tagsByVersion
 * @param {AbortSignal} signal
 */
function versionsOf(id, branch, tagsByVersion, signal) {
  const line = h("ol", { class: "timeline", "aria-label": `Versions of ${branch}, the latest first` });
  /** @type {string | undefined} */
  let lastDay;
  let isLatest = true;
  return paged({
    signal,
    load: async (page_token) => {
      const page = { page_token, limit: pageSize, signal, ...(branch !== mainBranch && { branch }) };
      const { versions, page_token: next } = await api.listTableVersions(id, page);
      return { items: versions, next };
    },
    frame: line,
    row: (version) => {
      const { timestamp_millis: at, manifest_size: size } = version;
      const today = at === undefined ? undefined : day(at);
      const heading = today !== lastDay && h("li", { class: "day" }, today ?? "At an unknown time");
      lastDay = today;
      const item = h(
        "li",
        { class: isLatest ? "version latest" : "version" },
        h(
          "div",
          { class: "line" },
          h("strong", {}, `Version ${version.version}`),
          isLatest && h("span", { class: "badge accent" }, "latest"),
          (tagsByVersion.get(version.version) ?? []).map((tag) => h("span", { class: "badge tag" }, tag)),
        ),
        h(
          "div",
          { class: "hint" },
          at !== undefined &&
            h("time", { datetime: new Date(at).toISOString(), title: dateAndTime(at) }, `${timeOfDay(at)}, ${ago(at)}`),
          size !== undefined && ` · manifest of ${bytes(size)}`,
          Object.entries(version.metadata ?? {}).map(([name, value]) => ` · ${name}: ${value}`),
        ),
      );
      isLatest = false;
      return heading ? [heading, item] : item;
    },
    empty: () =>
      empty(
        h("p", {}, "No version yet."),
        h("p", { class: "hint" }, "The table is declared, and nothing was written to it."),
      ),
    more: "Show older versions",
  });
}

// ----- Tags

/** @param {PageContext} context */
function tags({ id, signal }) {
  return loaded(
    signal,
    () => api.listTags(id, signal),
    (found) => {
      const names = Object.keys(found).sort();
      if (names.length === 0)
        return empty(
          h("p", {}, "No tags."),
          h("p", { class: "hint" }, "A tag names a version, so that it is found again and never cleaned up."),
        );
      return grid(
        ["Tag", "Version", "Branch"],
        h(
          "tbody",
          {},
          names.map((name) =>
            h(
              "tr",
              {},
              h("td", { "data-label": "Tag" }, h("span", { class: "badge tag" }, name)),
              h("td", { "data-label": "Version" }, found[name]?.version),
              h("td", { "data-label": "Branch" }, found[name]?.branch ?? mainBranch),
            ),
          ),
        ),
      );
    },
  );
}

// ----- Jobs and transactions

/** @param {PageContext} context */
function jobs(context) {
  return ofNamespace(context, "jobs", jobList);
}

/** @param {PageContext} context */
function transactions(context) {
  return ofNamespace(context, "transactions", transactionList);
}

/**
 * What is listed by namespace, of this table alone.
 *
 * @param {PageContext} context
 * @param {string} what
 * @param {(options: { namespace: Identifier, filter: { table: string }, signal: AbortSignal }) => Node} list
 */
function ofNamespace({ id, caller, signal }, what, list) {
  const namespace = id.slice(0, -1);
  if (!may(caller, "reader", namespace))
    return note(`The ${what} of this table are for readers of ${nameOf(namespace)}.`);
  return list({ namespace, filter: { table: id.join(api.delimiterFor(namespace)) }, signal });
}

// ----- Details

/** @param {PageContext} context */
function details(context) {
  const { id, caller, signal } = context;
  return loaded(
    signal,
    () => api.describeTable(id, { check_declared: true }, signal),
    (table) => {
      const isProtected = table.properties.protected === "true";
      const properties = Object.entries(table.properties).filter(([name]) => name !== "protected");
      const toggle = h(
        "button",
        { type: "button", onclick: change },
        isProtected ? "Allow to drop it" : "Protect it from being dropped",
      );
      async function change() {
        toggle.disabled = true;
        try {
          await api.setProtected(id, !isProtected);
          announce(isProtected ? "The table may be dropped now." : "The table is protected now.");
          frame.replaceWith(details(context));
        } catch (error) {
          toggle.disabled = false;
          toggle.after(h("p", { class: "field-error", role: "alert" }, sentence(/** @type {Error} */ (error).message)));
        }
      }
      const frame = h(
        "div",
        {},
        h(
          "dl",
          { class: "facts" },
          h("dt", {}, "Identifier"),
          h("dd", { class: "mono" }, nameOf(id), copyButton(nameOf(id), "identifier")),
          h("dt", {}, "Location"),
          h("dd", { class: "mono" }, table.location, copyButton(table.location, "location")),
          h("dt", {}, "State"),
          h("dd", {}, table.is_only_declared ? "declared, nothing written yet" : "written"),
          h("dt", {}, "Protection"),
          h("dd", {}, isProtected ? h("span", { class: "badge accent" }, icon("lock"), "protected") : "may be dropped"),
          properties.map(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono" }, value)]),
        ),
        may(caller, "admin", id) && toggle,
      );
      return frame;
    },
  );
}
