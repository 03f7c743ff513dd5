import { useQueryClient } from "@tanstack/preact-query";
import { delimiterFor, type Identifier, isOpen, jobTitle, openStatuses } from "@tiltyard/protocol";
import { useEffect, useRef } from "preact/hooks";
import { call, type JobSummary } from "./api.ts";
import { Filtered } from "./filters.tsx";
import { nameOf } from "./format.ts";
import { endedStatuses, NoRunner, silentSince } from "./job.tsx";
import { Pages } from "./list.tsx";
import { JobProgress } from "./progress.tsx";
import { itemsOf, polling, staleness, useCall, useList, useTitle } from "./queries.ts";
import { linkTo, type PageProps } from "./routes.ts";
import { announce, Empty, Facts, Hint, Mono, Section, Status, Table, Time } from "./view.tsx";

const pollEveryMs = 3_000;
const openMax = 100;
const endedPage = 20;

interface Props {
  readonly namespace: Identifier;
  readonly filter: { readonly table?: string; readonly principal?: string };
}

/** The page of running, waiting and ended jobs. */
export function JobsPage({ id, caller }: PageProps) {
  useTitle("Jobs");
  return (
    <>
      <h1 tabIndex={-1}>Jobs</h1>
      <Filtered
        id={id}
        caller={caller}
        show={({ namespace, filter }) => (
          <>
            <JobList namespace={namespace} filter={filter} />
            <Definitions namespace={namespace} />
          </>
        )}
      />
    </>
  );
}

/** The Ray clusters and the manifests that jobs may name. Nothing is shown if the catalog cannot read them. */
function Definitions({ namespace }: { readonly namespace: Identifier }) {
  const { data } = useCall("listJobDefinitions", { id: namespace });
  if (data === undefined) return null;
  const clusters = [...data.runner_clusters, ...data.clusters];
  const names = (list: readonly string[]) => list.map((name) => <Mono key={name}>{name} </Mono>);
  return (
    <Section title="Clusters and manifests">
      {clusters.length + data.manifests.length === 0 ? (
        <Hint>None are defined: jobs run on the default cluster of the runner, with its packages.</Hint>
      ) : (
        <Facts
          of={[
            ["Ray clusters", clusters.length > 0 && names(clusters)],
            ["Manifests", data.manifests.length > 0 && names(data.manifests)],
          ]}
        />
      )}
    </Section>
  );
}

/** The jobs of a namespace: the open ones, which are updated live, and the ended ones. */
export function JobList({ namespace, filter }: Props) {
  const request = { id: namespace, ...filter };
  const listed = useCall("listJobs", { ...request, status: [...openStatuses], limit: openMax }, polling(pollEveryMs));
  const ended = useList("listJobs", { ...request, status: endedStatuses, limit: endedPage }, ({ jobs }) => jobs);
  const open = listed.data?.jobs ?? [];
  useEnded(namespace, listed.data?.jobs, ended.refetch);

  const silent = open.findLast((job) => silentSince(job) !== undefined);
  // A running job proves that a runner exists, which may have reached its limit.
  const hasRunner = open.some((job) => job.attempt > 0 && silentSince(job) === undefined);
  const isAny = open.length > 0 || (itemsOf(ended)?.length ?? 0) > 0;
  return (
    <>
      <p class="hint" role="status">
        {listed.data && staleness(listed)}
      </p>
      {open.length > 0 && (
        <Section title="Running and waiting">
          {silent !== undefined && !hasRunner && <NoRunner title={jobTitle(silent)} since={silentSince(silent) ?? 0} />}
          <JobTable namespace={namespace} jobs={open} caption="Jobs that run or wait, the latest first" when="Opened" />
        </Section>
      )}
      <section aria-labelledby="section-ended">
        {isAny && <h2 id="section-ended">Ended</h2>}
        <Pages
          list={ended}
          show={(jobs) => (
            <JobTable namespace={namespace} jobs={jobs} caption="Jobs that have ended, the latest first" when="Ended" />
          )}
          empty={() => (open.length > 0 ? <Hint>No job has ended yet.</Hint> : <NoJobs namespace={namespace} />)}
          more="Show older jobs"
        />
      </section>
    </>
  );
}

const idOf = (namespace: Identifier, job: JobSummary) => job.job_id.split(delimiterFor(namespace));

/** Announces jobs that are no longer open, and calls `refresh` then. */
function useEnded(namespace: Identifier, open: readonly JobSummary[] | undefined, refresh: () => unknown): void {
  const last = useRef<readonly JobSummary[]>([]);
  const client = useQueryClient();
  useEffect(() => {
    if (open === undefined) return;
    const gone = last.current.filter((job) => open.every((each) => each.job_id !== job.job_id));
    last.current = open;
    if (gone.length === 0) return;
    refresh();
    for (const before of gone) {
      const id = idOf(namespace, before);
      client
        .fetchQuery({ queryKey: ["describeJob", { id }], queryFn: ({ signal }) => call("describeJob", { id }, signal) })
        .then(({ job }) => announce(`${jobTitle(job)} is ${job.status.toLowerCase()} now.`))
        .catch(() => {});
    }
  }, [open]);
}

function JobTable({
  namespace,
  jobs,
  caption,
  when,
}: {
  readonly namespace: Identifier;
  readonly jobs: readonly JobSummary[];
  readonly caption: string;
  readonly when: string;
}) {
  return (
    <Table
      columns={["Status", "Job", "Progress", "Principal", when]}
      rows={jobs.map((job) => ({
        key: job.job_id,
        cells: [
          <Status of={job.status} />,
          <div>
            <a href={linkTo("job", idOf(namespace, job))}>{jobTitle(job)}</a>
            <br />
            <small>
              <Mono>{nameOf(job.objects[0] ?? [])}</Mono>
            </small>
          </div>,
          <>
            <JobProgress label={`Progress of ${idOf(namespace, job).at(-1)}`} job={job} />
            {!isOpen(job) && job.reason && <p class="reason hint">{job.reason}</p>}
          </>,
          <Mono>{job.principal}</Mono>,
          <Time at={isOpen(job) ? job.created_at_millis : job.updated_at_millis} />,
        ],
      }))}
      caption={caption}
      class="jobs"
    />
  );
}

const NoJobs = ({ namespace }: { readonly namespace: Identifier }) => (
  <Empty text="No jobs.">
    <Hint>
      A job fills a computed column or refreshes a view. To open one, choose “Fill” in the schema of a{" "}
      <a href={linkTo("tables", namespace)}>table</a>, or send
    </Hint>
    <p>
      <code>{`POST /v1/table/{id}/backfill_column {"column": …}`}</code>
    </p>
  </Empty>
);
