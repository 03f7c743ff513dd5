import type { Identifier } from "@tiltyard/protocol";
import { type AnswerTo, call, type OperationName } from "./api.ts";
import { may } from "./caller.ts";
import { ComputedColumns, type FieldOf, useJobOpener } from "./computed-columns.tsx";
import { ago, amount, bytes, counted, dateAndTime, nameOf } from "./format.ts";
import { Principal, whatChanged } from "./history.tsx";
import { IndexFields, Policy } from "./policy.tsx";
import { useAction, useCall, useJobsOf } from "./queries.ts";
import { linkTo, type PageProps } from "./routes.ts";
import {
  Empty,
  Facts,
  Failure,
  Field,
  Hint,
  Input,
  Loaded,
  Mono,
  Note,
  Section,
  SmallButton,
  sentence,
  Table,
} from "./view.tsx";

type Index = AnswerTo<"listTableIndices">["indexes"][number];

/** The id of an operation. Its contract itself would triple the size of the console. */
const cleanUpOperation: Capitalize<OperationName> = "CleanUpTable";

/** The state of a table: its size, its health, its indices, its policy and its computed columns. */
export function Overview({ id, caller }: PageProps) {
  const described = useCall("describeTable", { id, load_detailed_metadata: true, check_declared: true });
  const mayWrite = may(caller, "writer", id);
  return (
    <Loaded query={described}>
      {({ is_only_declared: isDeclared, schema }) => {
        if (isDeclared)
          return (
            <Empty text="This table is declared. Nothing has been written to it yet.">
              <Hint>Write rows with any Lance client: it finds the table by its identifier, {nameOf(id)}.</Hint>
            </Empty>
          );
        const columns = schema?.fields ?? [];
        return (
          <>
            <Health id={id} caller={caller} />
            <LastCommit id={id} />
            {mayWrite && <Actions id={id} columns={columns} />}
            <Section title="Indices">
              <Indices id={id} />
            </Section>
            <Section title="Policy">
              <Policy id={id} columns={columns} mayWrite={mayWrite} />
            </Section>
            <ComputedColumns id={id} fields={columns} mayFill={mayWrite} />
          </>
        );
      }}
    </Loaded>
  );
}

function Health({ id, caller }: Pick<PageProps, "id" | "caller">) {
  const stats = useCall("getTableStats", { id });
  const { data: described } = useCall("describeTable", { id, load_detailed_metadata: true, check_declared: true });
  const cleanUp = useJobsOf(id, caller).find(
    ({ operation, status }) => operation === cleanUpOperation && status === "Succeeded",
  );
  return (
    <Loaded query={stats} instead={(error) => <Note>{sentence(error instanceof Error ? error.message : "")}</Note>}>
      {({ num_rows, total_bytes, fragment_stats: { num_fragments, num_small_fragments } }) => (
        <div class="figures">
          <Figure name="Rows" value={counted(num_rows)} />
          <Figure name="Size" value={bytes(total_bytes)} />
          {cleanUp && (
            <Figure
              name={`All files at the clean-up ${ago(cleanUp.updated_at_millis)}`}
              value={bytes(cleanUp.result.bytes_after ?? 0)}
              hint={`${bytes(cleanUp.result.bytes_before ?? 0)} before it`}
            />
          )}
          <Figure
            name="Fragments"
            value={counted(num_fragments)}
            hint={num_small_fragments > 0 ? `${counted(num_small_fragments)} small` : "none small"}
          />
          <Figure name="Deleted rows" value={counted(described?.stats?.num_deleted_rows ?? 0)} />
          <Figure name="Columns" value={counted(described?.schema?.fields.length ?? 0)} />
        </div>
      )}
    </Loaded>
  );
}

const Figure = ({ name, value, hint }: { readonly name: string; readonly value: string; readonly hint?: string }) => (
  <div class="figure">
    <span class="hint">{name}</span>
    <strong>{value}</strong>
    {hint && <span class="hint">{hint}</span>}
  </div>
);

function LastCommit({ id }: { readonly id: Identifier }) {
  const { data } = useCall("listTableHistory", { id, limit: 2 });
  const [latest, before] = data?.versions ?? [];
  if (latest === undefined) return null;
  const { version, principal, timestamp_millis: at } = latest;
  const changed = whatChanged(latest, before);
  return (
    <Facts
      of={[
        [
          "Last commit",
          <span>
            <a href={linkTo("table", id, "history")}>Version {version}</a>
            {changed && `: ${changed}`}
            {principal && (
              <>
                {" "}
                by <Principal name={principal} />
              </>
            )}
            {at !== undefined && <span title={dateAndTime(at)}>, {ago(at)}</span>}
          </span>,
        ],
      ]}
    />
  );
}

/** The buttons that open maintenance jobs. */
function Actions({ id, columns }: { readonly id: Identifier; readonly columns: readonly FieldOf[] }) {
  const { start, open, failed, isBusy } = useJobOpener(id);
  const { ask } = useAction();
  const build = () =>
    ask("Build an index", <IndexFields columns={columns} />, "Build it", (text) =>
      open(() => call("buildTableIndex", { id, column: text("column"), index_type: text("type") })),
    );
  const kept = (
    <Field label="Versions that stay">
      <Input name="keep" inputMode="numeric" pattern="[1-9]\d*" required defaultValue="10" />
    </Field>
  );
  const cleanUp = () =>
    ask("Delete versions older than 14 days", kept, "Clean up", (text) =>
      open(() => call("cleanUpTable", { id, keep_versions: Number(text("keep")) })),
    );
  const button = (label: string, onClick: () => unknown) => (
    <SmallButton aria-disabled={isBusy} onClick={() => onClick()}>
      {label}
    </SmallButton>
  );
  return (
    <div class="buttons">
      {button("Compact", () => start(() => call("compactTable", { id })))}
      {button("Build an index", build)}
      {button("Clean up", cleanUp)}
      <Failure text={failed} />
    </div>
  );
}

function Indices({ id }: { readonly id: Identifier }) {
  const coverage = ({ num_indexed_rows: indexed, num_unindexed_rows: missing }: Index) => {
    if (indexed === undefined || missing === undefined) return "unknown";
    const all = indexed + missing;
    const percent = all === 0 ? 100 : Math.floor((100 * indexed) / all);
    return missing === 0 ? "all rows" : `${percent} %; ${amount(missing, "row")} not indexed`;
  };
  return (
    <Loaded query={useCall("listTableIndices", { id })}>
      {({ indexes }) =>
        indexes.length === 0 ? (
          <Hint>No indices. Filters and searches scan the table.</Hint>
        ) : (
          <Table
            columns={["Index", "Columns", "Type", "Coverage"]}
            rows={indexes.map((index) => ({
              key: index.index_name,
              cells: [
                <Mono>{index.index_name}</Mono>,
                <Mono>{index.columns.join(", ")}</Mono>,
                index.index_type ?? "",
                coverage(index),
              ],
            }))}
          />
        )
      }
    </Loaded>
  );
}
