import { useQuery } from "@tanstack/preact-query";
import { delimiterFor, functionBindingKey, type Identifier } from "@tiltyard/protocol";
import { type AnswerTo, call } from "./api.ts";
import { amount, counted, inBackticks } from "./format.ts";
import { ProgressBar } from "./progress.tsx";
import { useAction } from "./queries.ts";
import { goTo } from "./routes.ts";
import { announce, Failure, Mono, messageOf, Section, SmallButton, Table } from "./view.tsx";

export type FieldOf = NonNullable<AnswerTo<"describeTable">["schema"]>["fields"][number];

/** The definition of a computed column. */
interface Computation {
  readonly what: string;
  readonly source: string;
  readonly inputs: readonly string[];
  readonly isAutomatic: boolean;
  /** The beginning of the hash of the function's code, which identifies its version. */
  readonly version?: string;
}

const versionLength = 12;

/** The computed columns of a table with their definitions and their filled rows; nothing without any. */
export function ComputedColumns({
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
 * Returns the definition of a computed column, as Geneva, lancedb and the catalog store it in the column's metadata;
 * undefined for any other column.
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
  if (metadata[functionBindingKey] !== undefined)
    return { what: "LanceDB Function", source: "", inputs: [], isAutomatic: false };
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
    <span class="badge accent">{what}</span> {source !== "" && <code>{source}</code>}
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
      const counting = lastCount
        .catch(() => {})
        .then(async () => ({
          all: await call("countTableRows", { id }, signal),
          missing: await call("countTableRows", { id, predicate }, signal),
        }));
      lastCount = counting;
      return counting;
    },
  });
  const label = `Rows of ${column} that are filled`;
  if (error !== null) return <span class="hint">Not counted: {messageOf(error)}</span>;
  if (data === undefined) return <ProgressBar label={label} words="counting" />;
  const { all, missing } = data;
  const words =
    missing === 0 ? `${amount(all, "row")}, all filled` : `${counted(missing)} of ${amount(all, "row")} not filled`;
  return <ProgressBar label={label} words={words} done={all - missing} total={all} />;
}

/** Opens jobs on a table and navigates to them. The id of a job has the delimiter of the table. */
export function useJobOpener(id: Identifier) {
  const { run, failed, isBusy } = useAction();
  const open = async (request: () => Promise<{ readonly job_id: string }>) => {
    const { job_id } = await request();
    announce("The job is open.");
    goTo("job", job_id.split(delimiterFor(id)));
  };
  return { open, start: (request: Parameters<typeof open>[0]) => run(() => open(request)), failed, isBusy };
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
  readonly open: () => Promise<{ readonly job_id: string }>;
  readonly id: Identifier;
}) {
  const { start, failed, isBusy } = useJobOpener(id);
  return (
    <div>
      <SmallButton aria-label={label} aria-disabled={isBusy} onClick={() => start(open)}>
        {text}
      </SmallButton>
      <Failure text={failed} />
    </div>
  );
}
