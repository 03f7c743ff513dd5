import * as api from "./api.js";
import { may } from "./caller.js";
import { announce, h } from "./dom.js";
import { nameOf } from "./format.js";
import { empty, grid, loaded, note, sentence } from "./list.js";
import { progressBar } from "./progress.js";
import { linkTo } from "./routes.js";

/**
 * @typedef {NonNullable<import("./api.js").Answer<import("./api.js").Contracts["describeTable"]>["schema"]>} Schema
 * @typedef {Schema["fields"][number]} Field
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {{ what: string, source: string, inputs: readonly string[], isAutomatic: boolean }} Computation
 */

/** The status of an operation that the catalog does not carry out. */
const unsupported = 406;

/** The columns of a table, and how those are computed that are. @param {import("./main.js").PageContext} context */
export function schema({ id, caller, signal }) {
  const load = () => api.describeTable(id, { load_detailed_metadata: true }, signal);
  const mayFill = may(caller, "writer", id);
  /** @param {unknown} error */
  const instead = (error) =>
    error instanceof api.ApiError && error.status === unsupported
      ? note("This catalog cannot tell the schema: it does not open datasets.")
      : undefined;
  /** @param {Awaited<ReturnType<typeof load>>} table */
  const show = (table) => {
    if (table.is_only_declared || table.schema === undefined)
      return empty(h("p", {}, "No columns yet: nothing has been written to this table."));
    const { fields, metadata = {} } = table.schema;
    const facts = [`Version ${table.version}`, `${fields.length} columns`];
    if (table.stats !== undefined)
      facts.push(`${table.stats.num_fragments} fragments`, `${table.stats.num_deleted_rows} deleted rows`);
    return h(
      "div",
      {},
      h("p", { class: "hint" }, facts.join(" · ")),
      viewOf(id, metadata, mayFill),
      computedColumns(id, fields, mayFill, signal),
      grid(
        ["Column", "Type", "Nullable"],
        h(
          "tbody",
          {},
          fields.flatMap((field) => fieldRows(field, 0)),
        ),
        { caption: "All columns" },
      ),
    );
  };
  return loaded(signal, load, show, instead);
}

/** @param {Field} field @param {number} depth @returns {Node[]} */
function fieldRows(field, depth) {
  const inner = field.type.fields ?? [];
  return [
    h(
      "tr",
      { "data-depth": Math.min(depth, 6) },
      h("td", { "data-label": "Column", class: "mono column" }, field.name),
      h("td", { "data-label": "Type", class: "mono" }, typeOf(field.type)),
      h("td", { "data-label": "Nullable" }, field.nullable ? "yes" : "no"),
    ),
    ...(field.type.type.toLowerCase().includes("struct") ? inner.flatMap((each) => fieldRows(each, depth + 1)) : []),
  ];
}

/** @param {Field["type"]} type @returns {string} */
function typeOf({ type, fields = [], length }) {
  const inner = type.toLowerCase().includes("struct") ? [] : fields.map((field) => typeOf(field.type));
  const more = [...inner, ...(length === undefined ? [] : [String(length)])];
  return more.length === 0 ? type : `${type}<${more.join(", ")}>`;
}

// ----- Computed columns

/** @param {Identifier} id @param {readonly Field[]} fields @param {boolean} mayFill @param {AbortSignal} signal */
function computedColumns(id, fields, mayFill, signal) {
  const computed = fields.flatMap(({ name, metadata = {} }) => {
    const computation = computationOf(metadata);
    return computation === undefined ? [] : [{ name, computation }];
  });
  if (computed.length === 0) return null;
  const counts = countsOf(id, signal);
  const rows = computed.map(({ name, computation }) =>
    h(
      "tr",
      {},
      h("td", { "data-label": "Column", class: "mono" }, name),
      h("td", { "data-label": "By" }, computedBy(computation)),
      h("td", { "data-label": "Rows" }, filled(name, counts, signal)),
      mayFill &&
        h(
          "td",
          { class: "action" },
          jobButton(`Fill ${name}`, "Fill", () => api.fillColumn(id, name), id),
        ),
    ),
  );
  return h(
    "section",
    { class: "computed-columns", "aria-labelledby": "computed-columns" },
    h("h2", { id: "computed-columns" }, "Computed columns"),
    grid(["Column", "Computed by", "Rows", ...(mayFill ? [""] : [])], h("tbody", {}, rows)),
  );
}

/**
 * How a column is computed, as Geneva and lancedb say it in the column's metadata; undefined when it is not.
 *
 * @param {Readonly<Record<string, string>>} metadata
 * @returns {Computation | undefined}
 */
function computationOf(metadata) {
  if (metadata.virtual_column === "true")
    return {
      what: "function",
      source: metadata["virtual_column.udf_name"] ?? "",
      inputs: namesIn(metadata["virtual_column.udf_inputs"]),
      isAutomatic: metadata["virtual_column.auto_backfill"] === "true",
    };
  if (metadata.computed_column === undefined) return undefined;
  return {
    what: metadata["computed_column.kind"] === "sql" ? "SQL" : "expression",
    source: metadata["computed_column.expression"] ?? "",
    inputs: namesIn(metadata["computed_column.inputs"]),
    isAutomatic: false,
  };
}

/** @param {string | undefined} text A list of names, as JSON. */
function namesIn(text) {
  try {
    const names = JSON.parse(text ?? "[]");
    return Array.isArray(names) ? names.map(String) : [];
  } catch {
    return [];
  }
}

/** @param {Computation} computation */
function computedBy({ what, source, inputs, isAutomatic }) {
  return h(
    "div",
    { class: "computed" },
    h("span", {}, h("span", { class: "badge accent" }, what), " ", h("code", {}, source)),
    inputs.length > 0 && h("span", { class: "hint" }, "of ", h("span", { class: "mono" }, inputs.join(", "))),
    isAutomatic && h("span", { class: "hint" }, "filled by itself when rows are added"),
  );
}

/** Counts rows one column after the other: each is a scan of a column. @param {Identifier} id @param {AbortSignal} signal */
function countsOf(id, signal) {
  /** @type {Promise<unknown>} */
  let last = Promise.resolve();
  /** @param {string} [predicate] @returns {Promise<number>} */
  const count = (predicate) => {
    const counted = last.catch(() => {}).then(() => api.countRows(id, predicate, signal));
    last = counted;
    return counted;
  };
  const all = count();
  return {
    all,
    /** @param {string} column */
    without: (column) => count(`\`${column.replaceAll("`", "``")}\` IS NULL`),
  };
}

/** How many rows of a column are filled. @param {string} column @param {ReturnType<typeof countsOf>} counts @param {AbortSignal} signal */
function filled(column, counts, signal) {
  const { root, set } = progressBar(`Rows of ${column} that are filled`);
  set(undefined, 1, "counting");
  Promise.all([counts.all, counts.without(column)]).then(
    ([all, missing]) =>
      set(all - missing, all, missing === 0 ? `all ${all} rows filled` : `${missing} of ${all} rows not filled`),
    (error) => {
      if (!signal.aborted)
        root.replaceWith(h("span", { class: "hint" }, `Not counted: ${/** @type {Error} */ (error).message}`));
    },
  );
  return root;
}

/**
 * A button that opens a job, and leads to it.
 *
 * @param {string} label
 * @param {string} text
 * @param {() => Promise<{ job_id: string }>} open
 * @param {Identifier} id Of the table: the job's id has the same delimiter.
 */
function jobButton(label, text, open, id) {
  const problem = h("p", { class: "field-error", role: "alert" });
  const button = h("button", { type: "button", "aria-label": label, onclick: start }, text);
  async function start() {
    button.disabled = true;
    problem.textContent = "";
    try {
      const { job_id } = await open();
      announce("The job is open.");
      location.hash = linkTo("job", job_id.split(api.delimiterFor(id)));
    } catch (error) {
      problem.textContent = sentence(/** @type {Error} */ (error).message);
      button.disabled = false;
    }
  }
  return h("div", { class: "job-button" }, button, problem);
}

/** What a materialized view is computed from. @param {Identifier} id @param {Readonly<Record<string, string>>} metadata @param {boolean} mayFill */
function viewOf(id, metadata, mayFill) {
  const name = metadata["geneva::view::base_table"];
  if (name === undefined) return null;
  const path = metadata["geneva::view::namespace_path"];
  const source = [...(path === undefined || path === "" ? [] : path.split("$")), ...name.split("$")];
  return h(
    "div",
    { class: "note view" },
    h(
      "p",
      {},
      "A materialized view of ",
      h("a", { href: linkTo("table", source), class: "mono" }, nameOf(source)),
      ".",
    ),
    mayFill && jobButton(`Refresh ${nameOf(id)}`, "Refresh", () => api.refreshView(id), id),
  );
}
