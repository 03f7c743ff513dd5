import { isOpen } from "@tiltyard/protocol";
import { useEffect, useState } from "preact/hooks";
import { type AnswerTo, ApiError, type Job } from "./api.ts";
import { dateAndTime } from "./format.ts";
import { duration } from "./progress.tsx";
import { useCall } from "./queries.ts";
import type { PageProps } from "./routes.ts";
import { type Children, Hint, Loaded, Mono, Note, type Row, Section, sentence, Table, words } from "./view.tsx";

type Attempt = AnswerTo<"listJobAttempts">["attempts"][number];

interface Props {
  readonly id: PageProps["id"];
  readonly job: Job;
}

/** Reads something again whenever the job has a new attempt or status. */
function useFollowing(name: "listJobAttempts" | "listJobErrors", { id, job }: Props) {
  const query = useCall(name, { id });
  useEffect(() => void query.refetch(), [job.attempt, job.status]);
  return query;
}

/** A table whose rows open to show more. */
function OpeningTable<Item>({
  columns,
  items,
  caption,
  keyOf,
  cells,
  detail,
}: {
  readonly columns: readonly string[];
  readonly items: readonly Item[];
  readonly caption: string;
  /** Returns the key of an item and the text of the button that opens its row. */
  readonly keyOf: (item: Item, index: number) => readonly [key: string, text: string];
  readonly cells: (item: Item) => readonly Children[];
  readonly detail: (item: Item) => Children;
}) {
  const [opened, setOpened] = useState<string>();
  const rowOf = (item: Item, index: number): Row => {
    const [key, text] = keyOf(item, index);
    const content = detail(item);
    const isOpened = opened === key;
    const button = (
      <button
        type="button"
        class="toggle"
        aria-expanded={isOpened}
        onClick={() => setOpened(isOpened ? undefined : key)}
      >
        {text}
      </button>
    );
    return { key, cells: [content ? button : text, ...cells(item)], detail: isOpened && content };
  };
  return <Table columns={columns} rows={items.map(rowOf)} caption={caption} />;
}

const Lines = ({ text }: { readonly text: string }) => <pre class="log">{text}</pre>;

/** The attempts at a job: their times, their places, their reasons and their output. */
export function Attempts(props: Props) {
  const attempts = useFollowing("listJobAttempts", props);
  const timeOf = (millis: number | undefined) => (millis === undefined ? "" : dateAndTime(millis));
  const lasted = ({ started_at_millis: start, ended_at_millis: end }: Attempt) =>
    start === undefined || end === undefined ? "" : duration((end - start) / 1000);
  return (
    <Section title="Attempts">
      <Loaded query={attempts}>
        {(answer) =>
          "attempts" in answer && answer.attempts.length > 0 ? (
            <OpeningTable
              columns={["Attempt", "Started", "Lasted", "Ended because", "Platform"]}
              items={answer.attempts}
              caption="Attempts, the earliest first"
              keyOf={({ number }) => [String(number), `Attempt ${number}`]}
              cells={(attempt) => [
                timeOf(attempt.started_at_millis),
                lasted(attempt),
                <span class="reason">{attempt.reason ?? ""}</span>,
                Object.entries(attempt.platform).map(([name, text]) => (
                  <div key={name}>
                    {words(name)}: <Mono>{text}</Mono>
                  </div>
                )),
              ]}
              detail={({ lines }) => lines.length > 0 && <Lines text={lines.join("\n")} />}
            />
          ) : (
            <Hint>{isOpen(props.job) ? "No runner has begun an attempt yet." : "No runner began an attempt."}</Hint>
          )
        }
      </Loaded>
    </Section>
  );
}

/** The errors that Geneva recorded for rows or batches, with their tracebacks. */
export function FailedRows(props: Props) {
  const errors = useFollowing("listJobErrors", props);
  const instead = (error: unknown) =>
    error instanceof ApiError && error.status === 406 ? <Note>{sentence(error.message)}</Note> : undefined;
  return (
    <Section title="Failing rows">
      <Loaded query={errors} instead={instead}>
        {(answer) =>
          "errors" in answer && answer.errors.length > 0 ? (
            <OpeningTable
              columns={["Error", "Message", "Column", "Fragment", "Row address"]}
              items={answer.errors}
              caption="The first errors of rows and batches"
              keyOf={({ type }, index) => [String(index), type]}
              cells={({ message, column, fragment_id, row_address }) => [
                <span class="reason">{message}</span>,
                <Mono>{column}</Mono>,
                fragment_id ?? "",
                row_address ?? "",
              ]}
              detail={({ trace }) => trace && <Lines text={trace} />}
            />
          ) : (
            <Hint>No errors of rows are recorded.</Hint>
          )
        }
      </Loaded>
    </Section>
  );
}

interface Sample {
  readonly at: number;
  readonly rows: number;
}

const samplesMax = 300;

/** The rows of a running job over time since the page was opened. The catalog keeps only the latest progress. */
export function Throughput({ job }: { readonly job: Job }) {
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  const { rows_committed: rows } = job.progress;
  useEffect(() => {
    if (rows !== undefined && job.status === "Running")
      setSamples((before) => [...before, { at: Date.now(), rows }].slice(-samplesMax));
  }, [rows, job.heartbeat]);
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || last.at === first.at || last.rows === first.rows) return null;
  const x = ({ at }: Sample) => (100 * (at - first.at)) / (last.at - first.at);
  const y = (sample: Sample) => 30 - (30 * (sample.rows - first.rows)) / (last.rows - first.rows);
  const seconds = (last.at - first.at) / 1000;
  const rate = Math.round((last.rows - first.rows) / seconds).toLocaleString("en");
  const text = `${(last.rows - first.rows).toLocaleString("en")} rows in the last ${duration(seconds)}, ${rate} rows/s`;
  return (
    <Section title="Throughput">
      <svg class="chart" viewBox="0 -1 100 32" preserveAspectRatio="none" role="img" aria-label={text}>
        <polyline points={samples.map((sample) => `${x(sample)},${y(sample)}`).join(" ")} />
      </svg>
      <Hint>{text}</Hint>
    </Section>
  );
}
