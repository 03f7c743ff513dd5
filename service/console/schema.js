import { may } from "./caller.js";
import { ApiError, call } from "./calls.js";
import { delimiterFor } from "./contracts.js";
import { nameOf } from "./format.js";
import { useEffect, useState } from "./libraries/hooks.js";
import { shown, useAction, useLoaded } from "./loading.js";
import { progressBar } from "./progress.js";
import { linkTo } from "./routes.js";
import { announce, empty, failure, hint, html, messageOf, mono, note, section, table } from "./view.js";

/**
 * @typedef {NonNullable<import("./calls.js").AnswerTo<"describeTable">["schema"]>} TableSchema
 * @typedef {TableSchema["fields"][number]} Field
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {{ what: string, source: string, inputs: readonly string[], isAutomatic: boolean }} Computation
 * @typedef {Readonly<Record<string, { all: number, missing: number } | string>>} Counts By column; a text says why there is none.
 */

/** The status of an operation that the catalog does not support. */
const unsupported = 406;
const depthMax = 6;

/** Shows the columns of a table and the definitions of computed ones. @param {import("./main.js").PageProps} props */
export function Schema({ id, caller }) {
  const described = useLoaded((signal) => call("describeTable", { id, load_detailed_metadata: true }, signal));
  const mayFill = may(caller, "writer", id);
  const instead = (/** @type {unknown} */ error) =>
    error instanceof ApiError && error.status === unsupported
      ? note("This catalog cannot tell the schema: it does not open datasets.")
      : undefined;
  return shown(
    described,
    ({ is_only_declared: isDeclared, schema, version, stats }) => {
      if (isDeclared || schema === undefined)
        return empty(html`<p>No columns yet: nothing has been written to this table.</p>`);
      const { fields, metadata = {} } = schema;
      const known = [`Version ${version}`, `${fields.length} columns`];
      if (stats !== undefined) known.push(`${stats.num_fragments} fragments`, `${stats.num_deleted_rows} deleted rows`);
      return html`
        ${hint(known.join(" · "))}
        ${viewOf(id, metadata, mayFill)}
        <${ComputedColumns} id=${id} fields=${fields} mayFill=${mayFill} />
        ${table(
          ["Column", "Type", "Nullable"],
          fields.flatMap((field) => fieldRows(field, [])),
          { caption: "All columns" },
        )}`;
    },
    instead,
  );
}

/** @param {Field} field @param {readonly string[]} outer The names of the enclosing fields. @returns {Parameters<typeof table>[1][number][]} */
function fieldRows(field, outer) {
  const path = [...outer, field.name];
  const style = { "--depth": Math.min(outer.length, depthMax) };
  const row = {
    key: path.join("."),
    cells: [
      html`<span class="mono nested" style=${style}>${field.name}</span>`,
      mono(typeOf(field.type)),
      field.nullable ? "yes" : "no",
    ],
  };
  return [row, ...(isStruct(field.type) ? (field.type.fields ?? []).flatMap((each) => fieldRows(each, path)) : [])];
}

/** @param {Field["type"]} type */
const isStruct = ({ type }) => type.toLowerCase().includes("struct");

/** @param {Field["type"]} type @returns {string} */
function typeOf(type) {
  const inner = isStruct(type) ? [] : (type.fields ?? []).map((field) => typeOf(field.type));
  const more = [...inner, ...(type.length === undefined ? [] : [String(type.length)])];
  return more.length === 0 ? type.type : `${type.type}<${more.join(", ")}>`;
}

/** @param {{ id: Identifier, fields: readonly Field[], mayFill: boolean }} props */
function ComputedColumns({ id, fields, mayFill }) {
  const computed = fields.flatMap(({ name, metadata = {} }) => {
    const computation = computationOf(metadata);
    return computation === undefined ? [] : [{ name, computation }];
  });
  const counts = useCounts(
    id,
    computed.map(({ name }) => name),
  );
  if (computed.length === 0) return null;
  const fill = (/** @type {string} */ column) => () => call("alterTableBackfillColumns", { id, column });
  return section(
    "Computed columns",
    table(
      ["Column", "Computed by", "Rows", ...(mayFill ? [""] : [])],
      computed.map(({ name, computation }) => ({
        key: name,
        cells: [
          mono(name),
          computedBy(computation),
          filled(name, counts),
          ...(mayFill ? [html`<${JobButton} label=${`Fill ${name}`} text="Fill" open=${fill(name)} id=${id} />`] : []),
        ],
      })),
    ),
  );
}

/**
 * Returns the definition of a computed column, as Geneva and lancedb store it in the column's metadata; undefined for
 * any other column.
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
const computedBy = ({ what, source, inputs, isAutomatic }) =>
  html`<div><span class="badge accent">${what}</span> <code>${source}</code>
    ${inputs.length > 0 && html`<div class="hint">of ${mono(inputs.join(", "))}</div>`}
    ${isAutomatic && html`<div class="hint">filled by itself when rows are added</div>`}
  </div>`;

/** Counts rows one column after the other, because each count scans a column. @param {Identifier} id @param {readonly string[]} columns */
function useCounts(id, columns) {
  const [counts, setCounts] = useState(/** @type {Counts} */ ({}));
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    async function count() {
      let all;
      for (const column of columns) {
        const predicate = `\`${column.replaceAll("`", "``")}\` IS NULL`;
        let known;
        try {
          all ??= await call("countTableRows", { id }, signal);
          known = { all, missing: await call("countTableRows", { id, predicate }, signal) };
        } catch (error) {
          if (signal.aborted) return;
          known = messageOf(error);
        }
        setCounts((before) => ({ ...before, [column]: known }));
      }
    }
    count();
    return () => leaving.abort();
  }, []);
  return counts;
}

/** Renders the number of filled rows of a column. @param {string} column @param {Counts} counts */
function filled(column, { [column]: known }) {
  const label = `Rows of ${column} that are filled`;
  if (known === undefined) return progressBar(label, "counting", {});
  if (typeof known === "string") return html`<span class="hint">Not counted: ${known}</span>`;
  const { all, missing } = known;
  const words = missing === 0 ? `all ${all} rows filled` : `${missing} of ${all} rows not filled`;
  return progressBar(label, words, { done: all - missing, total: all });
}

/**
 * Renders a button that opens a job and navigates to it.
 *
 * @param {{ label: string, text: string, open: () => Promise<{ job_id: string }>, id: Identifier }} props `id` is that of the table: the id of the job has the same delimiter.
 */
function JobButton({ label, text, open, id }) {
  const { run, failed, isBusy } = useAction();
  const start = () =>
    run(async () => {
      const { job_id } = await open();
      announce("The job is open.");
      location.hash = linkTo("job", job_id.split(delimiterFor(id)));
    });
  return html`<div><button type="button" class="outline small" aria-label=${label} aria-disabled=${isBusy} onClick=${start}>${text}</button>${failure(failed)}</div>`;
}

/** Renders the source of a materialized view. @param {Identifier} id @param {Readonly<Record<string, string>>} metadata @param {boolean} mayFill */
function viewOf(id, metadata, mayFill) {
  const name = metadata["geneva::view::base_table"];
  if (name === undefined) return null;
  const path = metadata["geneva::view::namespace_path"];
  const source = [...(path === undefined || path === "" ? [] : path.split("$")), ...name.split("$")];
  const refresh = () => call("refreshMaterializedView", { id });
  return note(html`<div class="heading">
    <p>A materialized view of <a href=${linkTo("table", source)} class="mono">${nameOf(source)}</a>.</p>
    ${mayFill && html`<${JobButton} label=${`Refresh ${nameOf(id)}`} text="Refresh" open=${refresh} id=${id} />`}
  </div>`);
}
