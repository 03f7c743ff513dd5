import { entriesOf, may } from "./caller.js";
import { call } from "./calls.js";
import { dateAndTime, nameOf } from "./format.js";
import { Pages, shown, useAction, useLoaded, usePages, useTitle } from "./loading.js";
import { linkTo } from "./routes.js";
import { breadcrumbOf } from "./shell.js";
import { announce, empty, facts, failure, hint, html, icon, mono, monoEntries, section, table, time } from "./view.js";

/**
 * @typedef {import("./main.js").PageProps} PageProps
 * @typedef {import("./format.js").Identifier} Identifier
 */

const limit = 50;

/** The page of the namespaces and tables of a namespace. A caller without a role on the root starts at the namespaces of its grants. @param {PageProps} props */
export function BrowsePage({ id, caller }) {
  const title = id.at(-1) ?? "Catalog";
  useTitle(title);
  return id.length > 0 || may(caller, "reader", [])
    ? html`<${NamespacePage} title=${title} id=${id} caller=${caller} />`
    : startPage(caller);
}

/** @param {import("./caller.js").Caller} caller */
function startPage(caller) {
  const entries = entriesOf(caller, "reader");
  return html`<h1 tabindex="-1">Catalog</h1>
    ${
      entries.length === 0
        ? empty(
            html`<p>You have no role anywhere in this catalog yet.</p>${hint(`Ask an admin to give ${caller.principal} one.`)}`,
          )
        : section(
            "What you were given",
            rows(
              "folder",
              entries.map((entry) => [nameOf(entry), linkTo("tables", entry)]),
            ),
          )
    }`;
}

/** @param {PageProps & { title: string }} props */
function NamespacePage({ title, id, caller }) {
  const namespace = useLoaded((signal) => call("describeNamespace", { id }, signal));
  return html`
    ${id.length > 0 && breadcrumbOf(id, caller)}
    <div class="heading">
      <h1 tabindex="-1">${title}</h1>
      <a href=${linkTo("jobs", id)}>Jobs here</a>
      <a href=${linkTo("transactions", id)}>Transactions here</a>
    </div>
    ${shown(
      namespace,
      ({ properties }) => html`
        ${facts(monoEntries(properties))}
        ${section("Namespaces", html`<${Namespaces} id=${id} />`)}
        ${section("Tables", html`<${Tables} id=${id} />`)}
        ${may(caller, "writer", id) && html`<${DroppedTables} id=${id} />`}`,
    )}`;
}

/** Renders a list of links. @param {"folder" | "table"} kind @param {readonly (readonly [name: string, href: string])[]} items */
const rows = (kind, items) =>
  html`<ul class="rows">${items.map(
    ([name, href]) =>
      html`<li key=${href}><a href=${href}>${icon(kind)}<span>${name}</span>${icon("chevron")}</a></li>`,
  )}</ul>`;

/** @param {{ id: Identifier }} props */
function Namespaces({ id }) {
  const pages = usePages(
    (page, signal) => call("listNamespaces", { id, limit, ...page }, signal),
    (answer) => answer.namespaces,
  );
  const show = (/** @type {readonly string[]} */ names) =>
    rows(
      "folder",
      names.map((name) => [name, linkTo("tables", [...id, name])]),
    );
  const none = () => empty(html`<p>No namespaces here.</p>`);
  return html`<${Pages} pages=${pages} show=${show} empty=${none} more="Show more namespaces" />`;
}

/** @param {{ id: Identifier }} props */
function Tables({ id }) {
  const pages = usePages(
    (page, signal) => call("listTables", { id, limit, ...page }, signal),
    (answer) => answer.tables,
  );
  const show = (/** @type {readonly string[]} */ names) =>
    rows(
      "table",
      names.map((name) => [name, linkTo("table", [...id, name])]),
    );
  const none = () =>
    empty(html`<p>No tables here.</p>${hint("A table appears as soon as a Lance client declares or writes one.")}`);
  return html`<${Pages} pages=${pages} show=${show} empty=${none} more="Show more tables" />`;
}

/** Lists tables that can be undropped; renders nothing without any. @param {{ id: Identifier }} props */
function DroppedTables({ id }) {
  /** @typedef {import("./calls.js").AnswerTo<"listDroppedTables">["dropped_tables"][number]} Dropped */
  const pages = usePages(
    (page, signal) => call("listDroppedTables", { id, limit, ...page }, signal),
    (answer) => answer.dropped_tables,
  );
  const { run, failed } = useAction();
  const undrop = (/** @type {Dropped} */ { id: dropped, dropped_id }) =>
    run(async () => {
      const { id: back } = await call("undropTable", { id: dropped, dropped_id });
      announce(`${nameOf(back)} is back.`);
      location.hash = linkTo("table", back);
    });
  const show = (/** @type {readonly Dropped[]} */ items) =>
    table(
      ["Table", "Dropped", "Kept until", ""],
      items.map((dropped) => ({
        key: dropped.dropped_id,
        cells: [
          mono(nameOf(dropped.id)),
          time(dropped.dropped_at_millis),
          dateAndTime(dropped.kept_until_millis),
          html`<button type="button" class="outline small" aria-label=${`Bring ${nameOf(dropped.id)} back`} onClick=${() => undrop(dropped)}>Bring back</button>`,
        ],
      })),
    );
  if (pages.error === undefined && !pages.items?.length) return null;
  return section(
    "Dropped tables",
    html`<${Pages} pages=${pages} show=${show} empty=${() => null} more="Show more dropped tables" />${failure(failed)}`,
  );
}
