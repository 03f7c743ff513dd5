import { delimiterFor, type Identifier, jobTitle } from "@tiltyard/protocol";
import type { AnswerTo, JobSummary } from "./api.ts";
import { computationOf } from "./computed-columns.tsx";
import { nameOf } from "./format.ts";
import { type Edge, Graph, type Node } from "./graph.tsx";
import { useCall, useJobsOf } from "./queries.ts";
import { linkTo, type PageProps } from "./routes.ts";
import { viewSourceOf } from "./schema.tsx";
import { Empty, Hint, Loaded, Mono, Section, Status, Table, Time, unsupported } from "./view.tsx";

type TableSchema = NonNullable<AnswerTo<"describeTable">["schema"]>;

/** The source of a table, its computed columns with their inputs, and its views. */
export function Lineage({ id, caller }: PageProps) {
  const described = useCall("describeTable", { id, load_detailed_metadata: true, check_declared: true });
  const views = useCall("listTableViews", { id });
  const jobs = useJobsOf(id, caller);
  return (
    <Loaded query={described} instead={unsupported}>
      {({ schema }) => (
        <Loaded query={views}>{(answer) => <Found id={id} schema={schema} views={answer.views} jobs={jobs} />}</Loaded>
      )}
    </Loaded>
  );
}

function computedColumnsOf(schema: TableSchema | undefined) {
  return (schema?.fields ?? []).flatMap(({ name, metadata = {} }) => {
    const computation = computationOf(metadata);
    return computation === undefined ? [] : [{ name, ...computation }];
  });
}

function Found({
  id,
  schema,
  views,
  jobs,
}: {
  readonly id: Identifier;
  readonly schema: TableSchema | undefined;
  readonly views: readonly Identifier[];
  readonly jobs: readonly JobSummary[];
}) {
  const computed = computedColumnsOf(schema);
  const source = viewSourceOf(schema?.metadata ?? {});
  if (source === undefined && computed.length === 0 && views.length === 0)
    return (
      <Empty text="Nothing is computed from this table or for it.">
        <Hint>Computed columns and materialized views appear here.</Hint>
      </Empty>
    );
  const nodes = new Map<string, Node>();
  const edges: Edge[] = [];
  const addTable = (table: Identifier, kind: string) =>
    nodes.set(`table ${nameOf(table)}`, { text: nameOf(table), kind, href: linkTo("table", table, "lineage") });
  const self = `table ${nameOf(id)}`;
  if (source !== undefined) addTable(source, "source").set(self, { text: nameOf(id), kind: "this table" });
  if (source !== undefined) edges.push([`table ${nameOf(source)}`, self]);
  if (views.length > 0) nodes.set(self, { text: nameOf(id), kind: "this table" });
  for (const view of views) {
    addTable(view, "view");
    edges.push([self, `table ${nameOf(view)}`]);
  }
  for (const { name, what, source: by, inputs } of computed) {
    nodes.set(`column ${name}`, { text: name, kind: by === "" ? what : `${what}: ${by}` });
    for (const input of inputs) {
      const key = `column ${input}`;
      if (!nodes.has(key)) nodes.set(key, { text: input, kind: "column" });
      edges.push([key, `column ${name}`]);
    }
  }
  return (
    <>
      <Graph nodes={nodes} edges={edges} label={`Lineage of ${nameOf(id)}`} />
      {computed.length > 0 && (
        <Section title="Computed columns">
          <Table
            columns={["Column", "Made from", "Made by", "Version", "Last job"]}
            rows={computed.map(({ name, inputs, what, source: by, version = "" }) => {
              const last = jobs.find(({ column }) => column === name);
              return {
                key: name,
                cells: [
                  <Mono>{name}</Mono>,
                  <Mono>{inputs.join(", ")}</Mono>,
                  <span>
                    {what} <Mono>{by}</Mono>
                  </span>,
                  <Mono>{version}</Mono>,
                  last === undefined ? "none" : <LastJob job={last} of={id} />,
                ],
              };
            })}
          />
        </Section>
      )}
    </>
  );
}

const LastJob = ({ job, of }: { readonly job: JobSummary; readonly of: Identifier }) => (
  <span>
    <a href={linkTo("job", job.job_id.split(delimiterFor(of)))}>{jobTitle(job)}</a> <Status of={job.status} />{" "}
    <Time at={job.updated_at_millis} />
  </span>
);
