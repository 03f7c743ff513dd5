import { stripVTControlCharacters } from "node:util";
import {
  durationText,
  type Job,
  jobTitle,
  objectKind,
  openStatuses,
  progressText,
  queueText,
  rowsText,
  stallText,
  withState,
} from "@tiltyard/protocol";
import { Command } from "commander";
import { stringify } from "yaml";
import type { ManagementClient } from "../catalog/documented-operations.ts";
import { addCatalogCommand, type CatalogOptions, catalogOf } from "./catalog-command.ts";
import { readIdentifier, showIdentifier } from "./identifier.ts";
import { interruptible } from "./interruption.ts";
import { describeJob, waitingFor, watchJob } from "./job-progress.ts";
import { listed } from "./listed.ts";
import { addOpeningCommands } from "./open-jobs.ts";
import { limitOption, print, printTable, timeOf, wholeNumber } from "./output.ts";
import { addPolicyCommand } from "./table-policy.ts";

interface ListOptions extends CatalogOptions {
  readonly namespace?: string;
  readonly table?: string;
  readonly principal?: string;
  readonly open?: boolean;
  readonly limit: number;
}

/** Creates the command `jobs` for the jobs of the catalog, which its runner executes. */
export function jobsCommand(): Command {
  const jobs = new Command("jobs").description("the catalog's jobs: open, list, watch, pause, cancel and retry them");

  addCatalogCommand(jobs, "list", "list jobs, latest first")
    .option("-n, --namespace <id>", "only jobs of this namespace and its descendants")
    .option("--table <id>", "only jobs on this table, e.g. 'prod$films'")
    .option("--principal <name>", "only jobs of this principal")
    .option("--open", "only jobs that have not ended")
    .addOption(limitOption("the number of jobs", 20))
    .action((options: ListOptions) => listJobs(catalogOf(options).management, options));

  addOfOne(jobs, "describe", "show the status, the progress and the times of a job").action(
    async (id: string, options: CatalogOptions) => {
      const job = await describeJob(catalogOf(options).management, id);
      print(options, job, stringify(summaryOf(job)).trimEnd());
    },
  );

  addOfOne(jobs, "watch", "show the progress of a job until it ends")
    .addHelpText(
      "after",
      "\nExit codes: 0 the job succeeded, 3 it failed, 4 it was canceled, 1 anything else. Ctrl-C leaves the job alone.",
    )
    .action((id: string, options: CatalogOptions) =>
      interruptible((signal) => watchJob(catalogOf(options).management, id, options, signal)),
    );

  addOfOne(jobs, "cancel", "cancel a job; its processes end within seconds").action(
    async (id: string, options: CatalogOptions) => {
      const { job } = await catalogOf(options).management.cancelJob({ id: readIdentifier(id) });
      print(options, job, `job ${id} is ${job.status}`);
    },
  );

  addOfOne(jobs, "pause", "pause a job; its processes end within seconds and its committed rows stay").action(
    async (id: string, options: CatalogOptions) => {
      const { job } = await catalogOf(options).management.pauseJob({ id: readIdentifier(id) });
      print(options, job, `job ${id} is paused. Next: tiltyard jobs resume '${id}'`);
    },
  );

  addOfOne(jobs, "resume", "resume a paused job").action(async (id: string, options: CatalogOptions) => {
    const { job } = await catalogOf(options).management.resumeJob({ id: readIdentifier(id) });
    print(options, job, `job ${id} is ${job.status}`);
  });

  addOfOne(jobs, "retry", "open a failed or canceled job again")
    .option("--failed-rows", "compute only the rows for which the job recorded an error; it may have succeeded")
    .action(async (id: string, options: CatalogOptions & { readonly failedRows?: boolean }) => {
      const { management } = catalogOf(options);
      const { job_id } = await management.retryJob({ id: readIdentifier(id), failed_rows: options.failedRows });
      print(options, { job_id }, job_id);
    });

  addOfOne(jobs, "logs", "print the last lines of a job's output")
    .option("--attempt <number>", "an earlier attempt; the latest one by default", wholeNumber)
    .action(async (id: string, options: CatalogOptions & { readonly attempt?: number }) => {
      const lines = await linesOf(catalogOf(options).management, id, options.attempt);
      // Colours and the line of a progress bar, which returns to its beginning, are for the terminal of the job.
      print(options, lines, stripVTControlCharacters(lines.join("\n")).replaceAll(/\r+\n?/g, "\n"));
    });

  addOfOne(jobs, "attempts", "list the attempts at a job with their times and reasons").action(
    async (id: string, options: CatalogOptions) => {
      const { attempts } = await catalogOf(options).management.listJobAttempts({ id: readIdentifier(id) });
      const shown = attempts.map(({ number, started_at_millis, ended_at_millis, reason }) => ({
        attempt: number,
        started: timeOf(started_at_millis),
        ended: timeOf(ended_at_millis),
        reason: reason?.split("\n", 1)[0] ?? "",
      }));
      printTable(options, shown, ["attempt", "started", "ended", "reason"], attempts);
    },
  );

  addOfOne(jobs, "errors", "list the errors of batches or rows of a job").action(
    async (id: string, options: CatalogOptions) => {
      const { errors, rows_failed = 0 } = await catalogOf(options).management.listJobErrors({
        id: readIdentifier(id),
      });
      const shown = errors.map(({ type, message, column, fragment_id, row_address }) => ({
        column,
        fragment: fragment_id ?? "",
        row: row_address ?? "",
        error: `${type}: ${message.split("\n", 1)[0]}`,
      }));
      const trace = errors[0]?.trace;
      const more = rows_failed - errors.length;
      const rest = more > 0 ? `\n\nThe job has ${more} more failed rows: ${rows_failed} in total.` : "";
      const note = trace === undefined ? "" : `\n\nThe traceback of the first error, all with --json:\n${trace.trim()}`;
      printTable(options, shown, ["column", "fragment", "row", "error"], errors, `${note}${rest}`);
    },
  );

  addCatalogCommand(jobs, "definitions", "list the names of manifests and Ray clusters for jobs")
    .option("-n, --namespace <id>", "for the tables of this namespace")
    .action(async (options: CatalogOptions & { readonly namespace?: string }) => {
      const { namespace } = options;
      const { manifests, clusters, runner_clusters } = await catalogOf(options).management.listJobDefinitions({
        ...(namespace !== undefined && { id: readIdentifier(namespace) }),
      });
      const ofKind = (kind: string, names: readonly string[]) => names.map((name) => ({ name, kind }));
      const found = [
        ...ofKind("manifest", manifests),
        ...ofKind("cluster, defined with Geneva", clusters),
        ...ofKind("cluster of the runner", runner_clusters),
      ];
      printTable(options, found, ["name", "kind"]);
    });
  addOpeningCommands(jobs);
  addPolicyCommand(jobs);
  return jobs;
}

function addOfOne(to: Command, name: string, description: string): Command {
  return addCatalogCommand(to, name, description).argument("<id>", "the job's id");
}

/** Returns the last lines of the output of an attempt. @throws Error if the job has no such attempt. */
async function linesOf(management: ManagementClient, id: string, attempt?: number): Promise<readonly string[]> {
  if (attempt === undefined) return (await management.describeJobLog({ id: readIdentifier(id) })).lines;
  const { attempts } = await management.listJobAttempts({ id: readIdentifier(id) });
  const found = attempts.find(({ number }) => number === attempt);
  if (found === undefined) throw new Error(`job ${id} has no attempt ${attempt}. See: tiltyard jobs attempts '${id}'`);
  return found.lines;
}

/** Returns the fields of a job in the order of their importance for users. */
function summaryOf(job: Job): Record<string, unknown> {
  const { job_id: id, attempt, reason, objects, progress, result, parameters, platform } = job;
  const { created_at_millis: opened, started_at_millis: started, ended_at_millis: ended } = job;
  const { paused_at_millis: paused, stalled_since_millis: stalled } = job;
  const unlessEmpty = (name: string, value: object) => Object.keys(value).length > 0 && { [name]: value };
  return {
    job: id,
    status: attempt > 1 ? `${job.status} (attempt ${attempt})` : job.status,
    ...(reason !== undefined && { reason }),
    [objectKind(job)]: showIdentifier(objects[0] ?? []),
    operation: jobTitle(job),
    ...(progress.rows_total !== undefined && { progress: progressText(job) }),
    ...(job.queue_position !== undefined && { queue: queueText(job) }),
    ...(paused !== undefined && { paused: `since ${timeOf(paused)}` }),
    ...(stalled !== undefined && { stalled: `${stallText(job)}, since ${timeOf(stalled)}` }),
    principal: job.principal,
    opened: timeOf(opened),
    ...(started !== undefined && { started: timeOf(started) }),
    ...(ended !== undefined && {
      ended: `${timeOf(ended)}, after ${durationText((ended - (started ?? opened)) / 1_000)}`,
    }),
    ...unlessEmpty("parameters", parameters),
    ...unlessEmpty("result", result),
    ...unlessEmpty("platform", platform),
  };
}

async function listJobs(management: ManagementClient, options: ListOptions): Promise<void> {
  const { namespace, table, principal, open, limit } = options;
  const request = {
    ...(namespace !== undefined && { id: readIdentifier(namespace) }),
    ...(table !== undefined && { table }),
    ...(principal !== undefined && { principal }),
    ...(open && { status: [...openStatuses] }),
    limit,
  };
  const jobs = await listed(management.listJobs, request, (page) => page.jobs, limit);
  const rows = jobs.map((job) => ({
    id: job.job_id,
    status: job.status,
    table: showIdentifier(job.objects[0] ?? []),
    job: jobTitle(job),
    progress: withState(job.progress.rows_total === undefined ? waitingFor(job) : rowsText(job.progress), job),
    principal: job.principal,
    opened: timeOf(job.created_at_millis),
  }));
  printTable(options, rows, ["id", "status", "table", "job", "progress", "principal", "opened"], jobs);
}
