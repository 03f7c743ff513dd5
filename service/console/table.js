import { may } from "./caller.js";
import { call } from "./calls.js";
import { delimiterFor } from "./contracts.js";
import { Rows } from "./data.js";
import { nameOf } from "./format.js";
import { History, mainBranch, readTags } from "./history.js";
import { JobList } from "./jobs.js";
import { shown, useAction, useLoaded, useTitle } from "./loading.js";
import { linkTo } from "./routes.js";
import { Schema } from "./schema.js";
import { breadcrumbOf, links } from "./shell.js";
import { TransactionList } from "./transactions.js";
import {
  announce,
  copyButton,
  empty,
  facts,
  failure,
  hint,
  html,
  icon,
  mono,
  monoEntries,
  note,
  table,
} from "./view.js";

/** @typedef {import("./main.js").PageProps} PageProps */

/** The parts of a table's page by their name in the URL. */
const tabs = /** @type {const} */ ([
  ["history", "History", History],
  ["schema", "Schema", Schema],
  ["data", "Data", Rows],
  ["tags", "Tags", Tags],
  ["jobs", "Jobs", ofNamespace("jobs", JobList)],
  ["transactions", "Transactions", ofNamespace("transactions", TransactionList)],
  ["details", "Details", Details],
]);

/** The page of a table with its versions, columns, rows, tags, jobs and transactions. @param {PageProps} props */
export function TablePage({ id, tab, caller }) {
  const name = id.at(-1) ?? "";
  const [key, label, Part] = tabs.find(([each]) => each === tab) ?? tabs[0];
  useTitle(`${name}: ${label.toLowerCase()}`);
  return html`
    ${breadcrumbOf(id, caller)}
    <h1 tabindex="-1">${name}</h1>
    ${links(
      `Parts of ${name}`,
      "tabs",
      tabs.map(([each, text]) => [each, text]),
      key,
      (each) => linkTo("table", id, each),
    )}
    <section aria-label=${label}><${Part} key=${key} id=${id} caller=${caller} /></section>`;
}

/**
 * Returns a component that restricts a list of a namespace to one table.
 *
 * @param {string} what
 * @param {typeof JobList | typeof TransactionList} List
 */
function ofNamespace(what, List) {
  return (/** @type {PageProps} */ { id, caller }) => {
    const namespace = id.slice(0, -1);
    return may(caller, "reader", namespace)
      ? html`<${List} namespace=${namespace} filter=${{ table: id.join(delimiterFor(namespace)) }} />`
      : note(`The ${what} of this table are for readers of ${nameOf(namespace)}.`);
  };
}

/** @param {PageProps} props */
function Tags({ id }) {
  const columns = ["Tag", "Version", "Branch"];
  const none = html`<p>No tags.</p>${hint("A tag names a version, so that it is found again and never cleaned up.")}`;
  const listed = useLoaded((signal) => readTags(id, signal));
  return shown(listed, (tags) => {
    const rows = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
    if (rows.length === 0) return empty(none);
    return table(
      columns,
      rows.map(([key, { version, branch = mainBranch }]) => ({
        key,
        cells: [html`<span class="badge tag">${key}</span>`, version, branch],
      })),
    );
  });
}

/** @param {PageProps} props */
function Details({ id, caller }) {
  const described = useLoaded((signal) => call("describeTable", { id, check_declared: true }, signal));
  const { run, failed } = useAction();
  return shown(described, ({ location, is_only_declared: isDeclared, properties }) => {
    const { protected: text, ...others } = properties ?? {};
    const isProtected = text === "true";
    const change = () =>
      run(async () => {
        await call(isProtected ? "unprotectTable" : "protectTable", { id });
        announce(isProtected ? "The table may be dropped now." : "The table is protected now.");
        described.reload();
      });
    return html`
      ${facts([
        ["Identifier", html`${mono(nameOf(id))}${copyButton(nameOf(id), "identifier")}`],
        ["Location", html`${mono(location)}${copyButton(location ?? "", "location")}`],
        ["State", isDeclared ? "declared, nothing written yet" : "written"],
        [
          "Protection",
          isProtected ? html`<span class="badge accent">${icon("lock")}protected</span>` : "may be dropped",
        ],
        ...monoEntries(others),
      ])}
      ${may(caller, "admin", id) && html`<button type="button" class="outline" onClick=${change}>${isProtected ? "Allow to drop it" : "Protect it from being dropped"}</button>`}
      ${failure(failed)}`;
  });
}
