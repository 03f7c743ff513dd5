import { durationText, isOpen } from "@tiltyard/protocol";
import { useEffect, useState } from "preact/hooks";
import type { AnswerTo, JobSummary } from "./api.ts";
import { amount, counted, dateAndTime } from "./format.ts";
import { useCall } from "./queries.ts";
import type { PageProps } from "./routes.ts";
import { type Children, Hint, Loaded, Mono, type Row, Section, Table, unsupported, words } from "./view.tsx";

type Attempt = AnswerTo<"listJobAttempts">["attempts"][number];

interface Props {
  readonly id: PageProps["id"];
  readonly job: JobSummary;
}

/** Reads the attempts again whenever the job has a new attempt, status or heartbeat. */
export function useAttempts({ id, job }: Props) {
  const query = useCall("listJobAttempts", { id });
  useEffect(() => void query.refetch(), [job.attempt, job.status, job.heartbeat]);
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
export function Attempts({ job, query }: Pick<Props, "job"> & { readonly query: ReturnType<typeof useAttempts> }) {
  const timeOf = (millis: number | undefined) => (millis === undefined ? "" : dateAndTime(millis));
  const lasted = ({ started_at_millis: start, ended_at_millis: end }: Attempt) =>
    start === undefined || end === undefined ? "" : durationText((end - start) / 1000);
  return (
    <Section title="Attempts">
      <Loaded query={query}>
        {(answer) =>
          answer.attempts.length > 0 ? (
            <OpeningTable
              columns={["Attempt", "Started", "Lasted", "Ended because", "Platform"]}
              items={answer.attempts}
              caption="Attempts, the earliest first"
              keyOf={({ number }) => [String(number), `Attempt ${number}`]}
              cells={(attempt) => [
                timeOf(attempt.started_at_millis),
                lasted(attempt),
                <span class="reason">{attempt.reason ?? ""}</span>,
                Object.keys(attempt.platform).length > 0 && (
                  <div>
                    {Object.entries(attempt.platform).map(([name, text]) => (
                      <div key={name}>
                        {words(name)}: <Mono>{text}</Mono>
                      </div>
                    ))}
                  </div>
                ),
              ]}
              detail={({ lines }) => lines.length > 0 && <Lines text={lines.join("\n")} />}
            />
          ) : (
            <Hint>{isOpen(job) ? "No runner has begun an attempt yet." : "No runner began an attempt."}</Hint>
          )
        }
      </Loaded>
    </Section>
  );
}

/** The errors of rows or batches, with the tracebacks that Geneva recorded. */
export function FailedRows({ id, job }: Props) {
  const errors = useCall("listJobErrors", { id });
  useEffect(() => void errors.refetch(), [job.attempt, job.status]);
  return (
    <Section title="Failing rows">
      <Loaded query={errors} instead={unsupported}>
        {(answer) =>
          answer.errors.length > 0 ? (
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

/** The committed rows of the latest attempt over time. */
export function Throughput({ attempts }: { readonly attempts: readonly Attempt[] }) {
  const samples = attempts.at(-1)?.samples ?? [];
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) return null;
  const rows = last.rows_committed - first.rows_committed;
  const millis = last.at_millis - first.at_millis;
  if (rows <= 0 || millis <= 0) return null;
  const rate = counted(Math.round((rows * 1000) / millis));
  const text = `${amount(rows, "row")} in ${durationText(millis / 1000)}, ${rate} rows/s`;
  const points = samples.map(
    (sample) =>
      `${(100 * (sample.at_millis - first.at_millis)) / millis},${30 - (30 * (sample.rows_committed - first.rows_committed)) / rows}`,
  );
  return (
    <Section title="Throughput">
      <svg class="chart" viewBox="0 -1 100 32" preserveAspectRatio="none" role="img" aria-label={text}>
        <polyline points={points.join(" ")} />
      </svg>
      <Hint>{text}</Hint>
    </Section>
  );
}

/** The events of a job in their order: its opening, its attempts and its end. */
export function Events({ job, attempts }: Pick<Props, "job"> & { readonly attempts: readonly Attempt[] }) {
  const because = (reason: string | undefined) => (reason === undefined ? "" : `: ${reason}`);
  const events: (readonly [at: number | undefined, text: string])[] = [
    [job.created_at_millis, `Opened by ${job.principal}`],
    ...attempts.flatMap(({ number, reason, ...attempt }) => [
      [attempt.claimed_at_millis, `Attempt ${number} was claimed by a runner`] as const,
      [attempt.started_at_millis, `Attempt ${number} started`] as const,
      [attempt.ended_at_millis, `Attempt ${number} ended${because(reason)}`] as const,
    ]),
    [isOpen(job) ? undefined : job.updated_at_millis, `Job ${job.status.toLowerCase()}${because(job.reason)}`],
  ];
  const rows = events.flatMap(([at, text], key) => (at === undefined ? [] : [{ key, cells: [dateAndTime(at), text] }]));
  return (
    <Section title="Events">
      <Table columns={["Time", "Event"]} rows={rows} caption="Events, the earliest first" />
    </Section>
  );
}
