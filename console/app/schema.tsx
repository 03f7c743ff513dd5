import { useQuery } from "@tanstack/preact-query";
import { delimiterFor, type Identifier } from "@tiltyard/protocol";
import type { CSSProperties } from "preact";
import { useState } from "preact/hooks";
import { type AnswerTo, ApiError, call } from "./api.ts";
import { may } from "./caller.ts";
import { inBackticks, nameOf } from "./format.ts";
import { ProgressBar } from "./progress.tsx";
import { useAction, useCall } from "./queries.ts";
import { goTo, linkTo, type PageProps } from "./routes.ts";
import {
  announce,
  Empty,
  Failure,
  Field,
  Hint,
  Input,
  Loaded,
  Mono,
  messageOf,
  Note,
  type Row,
  Section,
  Table,
} from "./view.tsx";

type TableSchema = NonNullable<AnswerTo<"describeTable">["schema"]>;
type FieldOf = TableSchema["fields"][number];

/** The definition of a computed column. */
interface Computation {
  readonly what: string;
  readonly source: string;
  readonly inputs: readonly string[];
  readonly isAutomatic: boolean;
  /** The beginning of the hash of the function's code, which identifies its version. */
  readonly version?: string;
}

/** The status of an operation that the catalog does not support. */
const unsupported = 406;
const depthMax = 6;
const versionLength = 12;
/** The number of columns above which they have a filter. */
const filteredMin = 20;

/** The columns of a table and the definitions of computed ones. */
export function Schema({ id, caller, state }: PageProps) {
  const described = useCall("describeTable", { id, load_detailed_metadata: true });
  const mayFill = may(caller, "writer", id);
  const instead = (error: unknown) =>
    error instanceof ApiError && error.status === unsupported ? (
      <Note>This catalog cannot tell the schema: it does not open datasets.</Note>
    ) : undefined;
  return (
    <Loaded query={described} instead={instead}>
      {({ is_only_declared: isDeclared, schema, version, stats }) => {
        if (isDeclared || schema === undefined)
          return (
            <Empty>
              <p>No columns yet: nothing has been written to this table.</p>
            </Empty>
          );
        const { fields, metadata = {} } = schema;
        const known = [`Version ${version}`, `${fields.length} columns`];
        if (stats !== undefined)
          known.push(`${stats.num_fragments} fragments`, `${stats.num_deleted_rows} deleted rows`);
        return (
          <>
            <Hint>{known.join(" · ")}</Hint>
            <View id={id} metadata={metadata} mayFill={mayFill} />
            <ComputedColumns id={id} fields={fields} mayFill={mayFill} />
            <Columns key={state.column} fields={fields} name={state.column ?? ""} />
          </>
        );
      }}
    </Loaded>
  );
}

/** The columns, with a filter by name if they are many. */
function Columns({ fields, name }: { readonly fields: readonly FieldOf[]; readonly name: string }) {
  const [text, setText] = useState(name);
  const rows = fields
    .flatMap((field) => fieldRows(field, []))
    .filter(({ key }) => String(key).toLowerCase().includes(text.toLowerCase()));
  return (
    <>
      {(fields.length > filteredMin || name !== "") && (
        <div class="filters">
          <Field label="Filter columns by name">
            <Input type="search" value={text} onInput={({ currentTarget }) => setText(currentTarget.value.trim())} />
          </Field>
        </div>
      )}
      {rows.length === 0 ? (
        <Hint>No column has “{text}” in its name.</Hint>
      ) : (
        <Table columns={["Column", "Type", "Nullable"]} rows={rows} caption="Columns" />
      )}
    </>
  );
}

/** Returns the rows of a field and of those inside it. `outer` has the names of the enclosing fields. */
function fieldRows(field: FieldOf, outer: readonly string[]): Row[] {
  const path = [...outer, field.name];
  const style = { "--depth": Math.min(outer.length, depthMax) } as CSSProperties;
  const row = {
    key: path.join("."),
    cells: [
      <span class="mono nested" style={style}>
        {field.name}
      </span>,
      <Mono>{typeOf(field.type)}</Mono>,
      field.nullable ? "yes" : "no",
    ],
  };
  return [row, ...(isStruct(field.type) ? (field.type.fields ?? []).flatMap((each) => fieldRows(each, path)) : [])];
}

const isStruct = ({ type }: FieldOf["type"]) => type.toLowerCase().includes("struct");

/** Returns the type of a column as text, such as `fixedsizelist<float32, 768>`. */
export function typeOf(type: FieldOf["type"]): string {
  const inner = isStruct(type) ? [] : (type.fields ?? []).map((field) => typeOf(field.type));
  const more = [...inner, ...(type.length === undefined ? [] : [String(type.length)])];
  return more.length === 0 ? type.type : `${type.type}<${more.join(", ")}>`;
}

function ComputedColumns({
  id,
  fields,
  mayFill,
}: {
  readonly id: Identifier;
  readonly fields: readonly FieldOf[];
  readonly mayFill: boolean;
}) {
  const computed = fields.flatMap(({ name, metadata = {} }) => {
    const computation = computationOf(metadata);
    return computation === undefined ? [] : [{ name, computation }];
  });
  if (computed.length === 0) return null;
  const fill = (column: string) => () => call("alterTableBackfillColumns", { id, column });
  return (
    <Section title="Computed columns">
      <Table
        columns={["Column", "Computed by", "Rows", ...(mayFill ? [""] : [])]}
        rows={computed.map(({ name, computation }) => ({
          key: name,
          cells: [
            <Mono>{name}</Mono>,
            <ComputedBy of={computation} />,
            <Filled id={id} column={name} />,
            ...(mayFill ? [<JobButton key="fill" label={`Fill ${name}`} text="Fill" open={fill(name)} id={id} />] : []),
          ],
        }))}
      />
    </Section>
  );
}

/**
 * Returns the definition of a computed column, as Geneva and lancedb store it in the column's metadata; undefined for
 * any other column.
 */
export function computationOf(metadata: Readonly<Record<string, string>>): Computation | undefined {
  if (metadata.virtual_column === "true")
    return {
      what: "function",
      source: metadata["virtual_column.udf_name"] ?? "",
      inputs: namesIn(metadata["virtual_column.udf_inputs"]),
      isAutomatic: metadata["virtual_column.auto_backfill"] === "true",
      version: (metadata["virtual_column.udf"]?.split("/").at(-1) ?? "").slice(0, versionLength),
    };
  if (metadata.computed_column === undefined) return undefined;
  return {
    what: metadata["computed_column.kind"] === "sql" ? "SQL" : "expression",
    source: metadata["computed_column.expression"] ?? "",
    inputs: namesIn(metadata["computed_column.inputs"]),
    isAutomatic: false,
  };
}

/** Parses a list of names, which is JSON. */
function namesIn(text: string | undefined): readonly string[] {
  try {
    const names = JSON.parse(text ?? "[]");
    return Array.isArray(names) ? names.map(String) : [];
  } catch {
    return [];
  }
}

const ComputedBy = ({ of: { what, source, inputs, isAutomatic } }: { readonly of: Computation }) => (
  <div>
    <span class="badge accent">{what}</span> <code>{source}</code>
    {inputs.length > 0 && (
      <div class="hint">
        of <Mono>{inputs.join(", ")}</Mono>
      </div>
    )}
    {isAutomatic && <div class="hint">filled by itself when rows are added</div>}
  </div>
);

/** The last of the counts, so that they run one after the other: each scans a column. */
let lastCount: Promise<unknown> = Promise.resolve();

/** The number of filled rows of a column. */
export function Filled({ id, column }: { readonly id: Identifier; readonly column: string }) {
  const predicate = `${inBackticks(column)} IS NULL`;
  const { data, error } = useQuery({
    queryKey: ["filled", id, column],
    queryFn: ({ signal }) => {
      const counted = lastCount
        .catch(() => {})
        .then(async () => ({
          all: await call("countTableRows", { id }, signal),
          missing: await call("countTableRows", { id, predicate }, signal),
        }));
      lastCount = counted;
      return counted;
    },
  });
  const label = `Rows of ${column} that are filled`;
  if (error !== null) return <span class="hint">Not counted: {messageOf(error)}</span>;
  if (data === undefined) return <ProgressBar label={label} words="counting" />;
  const { all, missing } = data;
  const words = missing === 0 ? `all ${all} rows filled` : `${missing} of ${all} rows not filled`;
  return <ProgressBar label={label} words={words} done={all - missing} total={all} />;
}

/** A button that opens a job and navigates to it. */
export function JobButton({
  label,
  text,
  open,
  id,
}: {
  readonly label: string;
  readonly text: string;
  readonly open: () => Promise<{ job_id: string }>;
  /** The identifier of the table. The id of the job has the same delimiter. */
  readonly id: Identifier;
}) {
  const { run, failed, isBusy } = useAction();
  const start = () =>
    run(async () => {
      const { job_id } = await open();
      announce("The job is open.");
      goTo("job", job_id.split(delimiterFor(id)));
    });
  return (
    <div>
      <button type="button" class="outline small" aria-label={label} aria-disabled={isBusy} onClick={start}>
        {text}
      </button>
      <Failure text={failed} />
    </div>
  );
}

/** Returns the source of a materialized view, as Geneva stores it in the schema; undefined for any other table. */
export function viewSourceOf(metadata: Readonly<Record<string, string>>): Identifier | undefined {
  const name = metadata["geneva::view::base_table"];
  if (name === undefined) return undefined;
  const path = metadata["geneva::view::namespace_path"];
  return [...(path === undefined || path === "" ? [] : path.split("$")), ...name.split("$")];
}

/** The source of a materialized view; nothing for any other table. */
function View({
  id,
  metadata,
  mayFill,
}: {
  readonly id: Identifier;
  readonly metadata: Readonly<Record<string, string>>;
  readonly mayFill: boolean;
}) {
  const source = viewSourceOf(metadata);
  if (source === undefined) return null;
  const refresh = () => call("refreshMaterializedView", { id });
  return (
    <Note>
      <div class="heading">
        <p>
          A materialized view of{" "}
          <a href={linkTo("table", source)} class="mono">
            {nameOf(source)}
          </a>
          .
        </p>
        {mayFill && <JobButton label={`Refresh ${nameOf(id)}`} text="Refresh" open={refresh} id={id} />}
      </div>
    </Note>
  );
}
