import { arrowTypeText, type Identifier } from "@tiltyard/protocol";
import type { CSSProperties } from "preact";
import { useState } from "preact/hooks";
import { ApiError, call } from "./api.ts";
import { may } from "./caller.ts";
import { ComputedColumns, type FieldOf, JobButton } from "./computed-columns.tsx";
import { amount, counted, nameOf } from "./format.ts";
import { useCall } from "./queries.ts";
import { linkTo, type PageProps } from "./routes.ts";
import { Empty, Field, Hint, Input, Loaded, Mono, Note, type Row, Section, Table } from "./view.tsx";

const depthMax = 6;
/** The number of columns above which they have a filter. */
const filteredMin = 20;
/** The number of columns that are listed at once. */
const shownMax = 100;

/** The columns of a table and the definitions of computed ones. */
export function Schema({ id, caller, state }: PageProps) {
  const described = useCall("describeTable", { id, load_detailed_metadata: true });
  const mayFill = may(caller, "writer", id);
  const instead = (error: unknown) =>
    error instanceof ApiError && error.status === 406 ? (
      <Note>This catalog cannot show the schema, because it does not open datasets.</Note>
    ) : undefined;
  return (
    <Loaded query={described} instead={instead}>
      {({ is_only_declared: isDeclared, schema, version, stats }) => {
        if (isDeclared || schema === undefined)
          return <Empty text="No columns yet: nothing has been written to this table." />;
        const { fields, metadata = {} } = schema;
        const known = [`Version ${version}`, amount(fields.length, "column")];
        if (stats !== undefined)
          known.push(amount(stats.num_fragments, "fragment"), amount(stats.num_deleted_rows, "deleted row"));
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
    <Section title="Columns">
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
        <>
          <Table columns={["Column", "Type", "Nullable"]} rows={rows.slice(0, shownMax)} />
          {rows.length > shownMax && (
            <Hint>
              {counted(shownMax)} of {counted(rows.length)} columns: filter them by name.
            </Hint>
          )}
        </>
      )}
    </Section>
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
      <Mono>{isStruct(field.type) ? field.type.type : arrowTypeText(field.type)}</Mono>,
      field.nullable ? "yes" : "no",
    ],
  };
  return [row, ...(isStruct(field.type) ? (field.type.fields ?? []).flatMap((each) => fieldRows(each, path)) : [])];
}

const isStruct = ({ type }: FieldOf["type"]) => type === "struct";

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
