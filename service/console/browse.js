import { describeNamespace, listDroppedTables, listNamespaces, listTables, undropTable } from "./api.js";
import { entriesOf, may } from "./caller.js";
import { announce, h, icon } from "./dom.js";
import { ago, dateAndTime, nameOf } from "./format.js";
import { empty, grid, loaded, paged, problem } from "./list.js";
import { linkTo } from "./routes.js";
import { breadcrumb } from "./shell.js";

const pageSize = 50;

/** The namespaces and tables of a namespace. @param {import("./main.js").PageContext} context */
export function browsePage({ id, caller, signal }) {
  const title = id.at(-1) ?? "Catalog";
  // A caller without a role on the root starts at the namespaces of its grants.
  if (id.length === 0 && !may(caller, "reader", [])) return { title, content: startPage(caller) };

  const content = h(
    "div",
    { class: "page" },
    id.length > 0 && breadcrumb(id, caller),
    h(
      "div",
      { class: "heading" },
      h("h1", { tabindex: "-1" }, title),
      h(
        "div",
        { class: "links" },
        h("a", { class: "button quiet", href: linkTo("jobs", id) }, "Jobs here"),
        h("a", { class: "button quiet", href: linkTo("transactions", id) }, "Transactions here"),
      ),
    ),
    loaded(
      signal,
      () => describeNamespace(id, signal),
      ({ properties }) =>
        h(
          "div",
          { class: "loaded" },
          propertiesOf(properties),
          section("Namespaces", namespacesOf(id, signal)),
          section("Tables", tablesOf(id, signal)),
          may(caller, "writer", id) && droppedIn(id, signal),
        ),
    ),
  );
  return { title, content };
}

/** @param {import("./caller.js").Caller} caller */
function startPage(caller) {
  const entries = entriesOf(caller, "reader");
  return h(
    "div",
    { class: "page" },
    h("h1", { tabindex: "-1" }, "Catalog"),
    entries.length === 0
      ? empty(
          h("p", {}, "You have no role anywhere in this catalog yet."),
          h("p", { class: "hint" }, `Ask an admin to give ${caller.principal} one.`),
        )
      : section(
          "What you were given",
          h(
            "ul",
            { class: "rows" },
            entries.map((entry) => row("folder", nameOf(entry), linkTo("tables", entry))),
          ),
        ),
  );
}

/** @param {Readonly<Record<string, string>>} properties */
function propertiesOf(properties) {
  const entries = Object.entries(properties);
  if (entries.length === 0) return null;
  return h(
    "dl",
    { class: "facts" },
    entries.map(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono" }, value)]),
  );
}

/** @param {string} title @param {...import("./dom.js").Child} content */
function section(title, ...content) {
  const id = `section-${title.toLowerCase().replaceAll(" ", "-")}`;
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), content);
}

/** @param {"folder" | "table"} kind @param {string} name @param {string} href */
function row(kind, name, href) {
  return h("li", {}, h("a", { href }, icon(kind), h("span", { class: "name" }, name), icon("chevron")));
}

/** @param {import("./format.js").Identifier} id @param {AbortSignal} signal */
function namespacesOf(id, signal) {
  return paged({
    signal,
    load: async (page_token) => {
      const { namespaces, page_token: next } = await listNamespaces(id, { page_token, limit: pageSize, signal });
      return { items: namespaces, next };
    },
    frame: h("ul", { class: "rows" }),
    row: (name) => row("folder", name, linkTo("tables", [...id, name])),
    empty: () => empty(h("p", {}, "No namespaces here.")),
    more: "Show more namespaces",
  });
}

/** @param {import("./format.js").Identifier} id @param {AbortSignal} signal */
function tablesOf(id, signal) {
  return paged({
    signal,
    load: async (page_token) => {
      const { tables, page_token: next } = await listTables(id, { page_token, limit: pageSize, signal });
      return { items: tables, next };
    },
    frame: h("ul", { class: "rows" }),
    row: (name) => row("table", name, linkTo("table", [...id, name])),
    empty: () =>
      empty(
        h("p", {}, "No tables here."),
        h("p", { class: "hint" }, "A table appears as soon as a Lance client declares or writes one."),
      ),
    more: "Show more tables",
  });
}

/** Tables that can be brought back; nothing is shown while there are none. @param {import("./format.js").Identifier} id @param {AbortSignal} signal */
function droppedIn(id, signal) {
  const root = h("div", { class: "dropped" });
  const body = h("tbody");
  const list = paged({
    signal,
    load: async (page_token) => {
      const { dropped_tables: items, page_token: next } = await listDroppedTables(id, {
        page_token,
        limit: pageSize,
        signal,
      });
      if (items.length > 0 && !root.hasChildNodes()) root.append(section("Dropped tables", list));
      return { items, next };
    },
    frame: grid(["Table", "Dropped", "Kept until", ""], body),
    into: body,
    row: (dropped) => {
      const name = nameOf(dropped.id);
      const tr = h(
        "tr",
        {},
        h("td", { "data-label": "Table", class: "mono" }, name),
        h(
          "td",
          { "data-label": "Dropped", title: dateAndTime(dropped.dropped_at_millis) },
          ago(dropped.dropped_at_millis),
        ),
        h("td", { "data-label": "Kept until" }, dateAndTime(dropped.kept_until_millis)),
        h(
          "td",
          { class: "action" },
          h("button", { type: "button", "aria-label": `Bring ${name} back`, onclick: undrop }, "Bring back"),
        ),
      );
      async function undrop() {
        try {
          const { id: back } = await undropTable(dropped.id, dropped.dropped_id);
          announce(`${nameOf(back)} is back.`);
          location.hash = linkTo("table", back);
        } catch (error) {
          root.append(problem(error, () => location.reload()));
        }
      }
      return tr;
    },
    empty: () => h("span"),
    more: "Show more dropped tables",
  });
  return root;
}
