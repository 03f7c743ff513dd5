import {
  delimiterFor,
  durationText,
  isOfClient,
  isOpen,
  jobTitle,
  objectKind,
  openStatuses,
  transactionStatuses,
} from "@tiltyard/protocol";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { call, type Job, type JobSummary } from "./api.ts";
import { Attempts, Events, FailedRows, Throughput, useAttempts } from "./attempts.tsx";
import { may } from "./caller.ts";
import { ago, amount, counted, dateAndTime, nameOf } from "./format.ts";
import { JobProgress } from "./progress.tsx";
import { polling, staleness, useAction, useAnnounced, useCall, useTitle } from "./queries.ts";
import { goTo, linkTo, type PageProps } from "./routes.ts";
import { Breadcrumb } from "./shell.tsx";
import {
  type Children,
  CopyButton,
  confirm,
  Facts,
  Failure,
  Hint,
  Loaded,
  Mono,
  monoEntries,
  Note,
  Section,
  Status,
  sentence,
  words,
} from "./view.tsx";

const pollEveryMs = 2_000;
/** The time without a sign of a runner after which a warning appears. */
const silentMs = 60_000;
const shownMax = 300;

export const endedStatuses = transactionStatuses.filter((status) => !openStatuses.includes(status));

/**
 * Returns the time since which a job shows no sign of a runner, in milliseconds since the epoch; undefined if a runner
 * executes it or none is needed.
 */
export function silentSince(job: JobSummary): number | undefined {
  const { attempt, heartbeat, created_at_millis: opened } = job;
  if (!isOpen(job) || isOfClient(job)) return undefined;
  const last = heartbeat === undefined || attempt === 0 ? opened : Date.parse(heartbeat);
  return Date.now() - last > silentMs ? last : undefined;
}

/** The recommendation for a job that no runner claims. `since` is in milliseconds since the epoch. */
export function NoRunner({ title, since }: { readonly title: string; readonly since: number }) {
  const command = "tiltyard runner --local";
  return (
    <div class="box warning" role="status">
      <p>
        “{title}” has waited for a runner for {durationText((Date.now() - since) / 1000)}. A runner that is at its limit
        of jobs starts it later. If none is running, start one, with the catalog's URL and a key with the role runner in
        its environment (TILTYARD_CATALOG_URL, TILTYARD_API_KEY):
      </p>
      <p>
        <code>{command}</code>
        <CopyButton text={command} what="command" />
      </p>
    </div>
  );
}

/** The page of a job with its progress, its output and its possible actions. */
export function JobPage({ id, caller }: PageProps) {
  useTitle(`Job ${id.at(-1) ?? ""}`);
  const described = useCall(
    "describeJob",
    { id },
    {
      ...polling(pollEveryMs),
      refetchInterval: ({ state: { data } }) => (data === undefined || isOpen(data.job) ? pollEveryMs : false),
    },
  );
  return (
    <>
      <Breadcrumb steps={[["Jobs", linkTo("jobs", id.slice(0, -1))], [<Mono>{id.at(-1)}</Mono>]]} />
      <Loaded query={described}>
        {({ job }) => <JobView id={id} job={job} stale={staleness(described)} mayChange={may(caller, "writer", id)} />}
      </Loaded>
    </>
  );
}

interface JobViewProps {
  readonly id: PageProps["id"];
  readonly job: Job;
  readonly stale: string;
  readonly mayChange: boolean;
}

function JobView({ id, job, stale, mayChange }: JobViewProps) {
  const { run, failed } = useAction();
  const title = jobTitle(job);
  useAnnounced(`${title} is ${job.status.toLowerCase()} now.`);
  const log = useCall(
    "describeJobLog",
    { id },
    { ...polling(pollEveryMs), ...(!isOpen(job) && { refetchInterval: false }) },
  );
  useEffect(() => void log.refetch(), [job.status]);
  const lines = log.data?.lines ?? [];
  const query = useAttempts({ id, job });
  const attempts = query.data?.attempts ?? [];

  async function cancel() {
    const text = "What runs of it stops within seconds. Rows that it has filled stay filled.";
    if (!(await confirm({ title: `Cancel “${title}”?`, text, action: "Cancel the job", keep: "Keep it" }))) return;
    await call("cancelJob", { id });
  }
  const isPaused = job.paused_at_millis !== undefined;
  async function pauseOrResume() {
    await call(isPaused ? "resumeJob" : "pauseJob", { id });
  }
  async function retry(failed_rows = false) {
    const { job_id } = await call("retryJob", { id, failed_rows });
    goTo("job", job_id.split(delimiterFor(id)));
  }
  // Without a runner, a pause or a further job would have no effect.
  const hasRunner = !isOfClient(job);
  const hasFailedRows = (job.progress.rows_skipped_on_error ?? 0) > 0;
  const heading = useRef<HTMLHeadingElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const hadFocus = button.current !== null && button.current === document.activeElement;
  useLayoutEffect(() => {
    if (hadFocus && button.current === null) heading.current?.focus();
  });
  const action = isOpen(job) ? (
    <>
      {hasRunner && (
        <button type="button" class="outline" onClick={() => run(pauseOrResume)}>
          {isPaused ? "Resume" : "Pause"}
        </button>
      )}
      <button key="cancel" ref={button} type="button" class="outline" onClick={() => run(cancel)}>
        Cancel the job
      </button>
    </>
  ) : (
    <>
      {hasRunner && hasFailedRows && (
        <button type="button" class="outline" onClick={() => run(() => retry(true))}>
          Try the failed rows again
        </button>
      )}
      {hasRunner && job.status !== "Succeeded" && (
        <button key="retry" ref={button} type="button" onClick={() => run(retry)}>
          Try again
        </button>
      )}
    </>
  );

  return (
    <>
      <div class="heading">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {mayChange && action}
      </div>
      <div class="heading">
        <Status of={job.status} />
        <JobProgress label={`Progress of ${title}`} job={job} />
        <span class="hint">{stale}</span>
      </div>
      <Failure text={failed} />
      <Advice job={job} />
      <JobFacts job={job} />
      <Throughput attempts={attempts} />
      <Section title="Log">
        {lines.length > 0 ? (
          <Log text={lines.join("\n")} />
        ) : (
          <Hint>{isOpen(job) ? "The job has printed nothing yet." : "The job has printed nothing."}</Hint>
        )}
      </Section>
      {hasRunner && (
        <>
          <Attempts job={job} query={query} />
          <FailedRows id={id} job={job} />
          <Events job={job} attempts={attempts} />
        </>
      )}
    </>
  );
}

/** A log that scrolls to its end while it grows, unless the user has scrolled. */
function Log({ text }: { readonly text: string }) {
  const log = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (isAtEnd.current) log.current?.scrollTo({ top: log.current.scrollHeight });
  }, [text]);
  const onScroll = ({ currentTarget: pre }: { readonly currentTarget: HTMLElement }) => {
    isAtEnd.current = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls the log.
    <pre ref={log} class="log" tabIndex={0} role="log" aria-label="The last lines of the log" onScroll={onScroll}>
      {text}
    </pre>
  );
}

/** The reason of a job or a recommendation. */
function Advice({ job }: { readonly job: Job }) {
  const { status, reason } = job;
  if (status === "Failed")
    return (
      <div class="box problem">
        <p class="reason">{sentence(reason ?? "no reason was recorded")}</p>
      </div>
    );
  if (reason !== undefined) return <Note>{sentence(reason)}</Note>;
  const since = silentSince(job);
  if (since !== undefined) return <NoRunner title={jobTitle(job)} since={since} />;
  if (job.stalled_since_millis !== undefined)
    return (
      <Note>
        The job has reported no progress since {dateAndTime(job.stalled_since_millis)}. Read its log. If its function
        hangs, cancel the job. A job with timeout_seconds ends by itself.
      </Note>
    );
  return status === "Queued" && isOfClient(job) ? <Note>No runner runs this job: its opener does.</Note> : null;
}

const inWords = (entries: readonly (readonly [string, string])[]) =>
  monoEntries(Object.fromEntries(entries.map(([name, text]) => [words(name), text])));

function JobFacts({ job }: { readonly job: Job }) {
  const [object = []] = job.objects;
  const { column, ...parameters } = job.parameters;
  const heartbeat = Date.parse(job.heartbeat ?? "");
  const at = (millis: number) => `${dateAndTime(millis)}, ${ago(millis)}`;
  const shortened = Object.entries(parameters).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const shown = `${text.slice(0, shownMax)}… (${amount(text.length, "character")})`;
    return [name, text.length > shownMax ? shown : text] as const;
  });
  const result = Object.entries(job.result).map(([name, count]) => [name, counted(count)] as const);
  const isFunction = objectKind(job) === "function";
  const facts: [string, Children][] = [
    [
      isFunction ? "Function" : "Table",
      // The page of a namespace lists its Functions.
      <a href={isFunction ? linkTo("tables", object.slice(0, -1)) : linkTo("table", object)} class="mono">
        {nameOf(object)}
      </a>,
    ],
    ["Column", column && <Mono>{column}</Mono>],
    ["Principal", job.principal],
    ["Opened", at(job.created_at_millis)],
    ["Ended", !isOpen(job) && at(job.updated_at_millis)],
    ["Attempt", job.attempt > 0 && String(job.attempt)],
    ["Heartbeat", job.status === "Running" && !Number.isNaN(heartbeat) && ago(heartbeat)],
  ];
  return (
    <Facts
      of={[
        ...facts,
        ...inWords(shortened),
        ...inWords(result),
        [
          "Id",
          <>
            <Mono>{job.job_id}</Mono>
            <CopyButton text={job.job_id} what="id" />
          </>,
        ],
        ["Request", <Mono>{job.request_id}</Mono>],
      ]}
    />
  );
}
