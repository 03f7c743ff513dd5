import { type Job, openStatuses, parseIdentifier, rowsText } from "@tiltyard/protocol";
import { Command } from "commander";
import type { ManagementClient } from "../catalog/documented-operations.ts";
import { addCatalogCommand, type CatalogOptions, managementOf } from "./catalog-command.ts";
import { interruptible } from "./interruption.ts";
import { describeJob, waitingFor, watchJob } from "./job-progress.ts";
import { addOpeningCommands } from "./open-jobs.ts";
import { limitOption, print, printTable, wholeNumber } from "./output.ts";
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
  const jobs = new Command("jobs").description("the catalog's jobs: open, list, watch, cancel and retry them");

  addCatalogCommand(jobs, "list", "list jobs, latest first")
    .option("-n, --namespace <id>", "only jobs of this namespace and its descendants")
    .option("--table <id>", "only jobs on this table, e.g. 'prod$films'")
    .option("--principal <name>", "only jobs of this principal")
    .option("--open", "only jobs that have not ended")
    .addOption(limitOption("the number of jobs", 20))
    .action((options: ListOptions) => listJobs(managementOf(options), options));

  addOfOne(jobs, "describe", "show all fields of a job").action(async (id: string, options: CatalogOptions) => {
    const job = await describeJob(managementOf(options), id);
    print(options, job, JSON.stringify(job, null, 2));
  });

  addOfOne(jobs, "watch", "show the progress of a job until it ends")
    .addHelpText(
      "after",
      "\nExit codes: 0 the job succeeded, 3 it failed, 4 it was canceled, 1 anything else. Ctrl-C leaves the job alone.",
    )
    .action((id: string, options: CatalogOptions) =>
      interruptible((signal) => watchJob(managementOf(options), id, options, signal)),
    );

  addOfOne(jobs, "cancel", "cancel a job; its processes end within seconds").action(
    async (id: string, options: CatalogOptions) => {
      const { job } = await managementOf(options).cancelJob({ id: parseIdentifier(id) });
      print(options, job, `job ${id} is ${job.status}`);
    },
  );

  addOfOne(jobs, "retry", "open a failed or canceled job again").action(async (id: string, options: CatalogOptions) => {
    const { job_id } = await managementOf(options).retryJob({ id: parseIdentifier(id) });
    print(options, { job_id }, job_id);
  });

  addOfOne(jobs, "logs", "print the last lines of a job's output")
    .option("--attempt <number>", "an earlier attempt; the latest one by default", wholeNumber)
    .action(async (id: string, options: CatalogOptions & { readonly attempt?: number }) => {
      const lines = await linesOf(managementOf(options), id, options.attempt);
      print(options, lines, lines.join("\n"));
    });

  addOfOne(jobs, "attempts", "list the attempts at a job with their times and reasons").action(
    async (id: string, options: CatalogOptions) => {
      const { attempts } = await managementOf(options).listJobAttempts({ id: parseIdentifier(id) });
      if (options.json) return void process.stdout.write(`${JSON.stringify(attempts)}\n`);
      const shown = attempts.map(({ number, started_at_millis, ended_at_millis, reason }) => ({
        attempt: String(number),
        started: timeOf(started_at_millis),
        ended: timeOf(ended_at_millis),
        reason: reason?.split("\n", 1)[0] ?? "",
      }));
      printTable(options, shown, ["attempt", "started", "ended", "reason"]);
    },
  );

  addOfOne(jobs, "errors", "list the errors that Geneva recorded for batches or rows of a job").action(
    async (id: string, options: CatalogOptions) => {
      const { errors } = await managementOf(options).listJobErrors({ id: parseIdentifier(id) });
      if (options.json) return void process.stdout.write(`${JSON.stringify(errors)}\n`);
      const shown = errors.map(({ type, message, column, fragment_id, row_address }) => ({
        column,
        fragment: fragment_id ?? "",
        row: row_address ?? "",
        error: `${type}: ${message.split("\n", 1)[0]}`,
      }));
      printTable(options, shown, ["column", "fragment", "row", "error"]);
    },
  );

  addCatalogCommand(jobs, "definitions", "list the names of manifests and Ray clusters for jobs")
    .option("-n, --namespace <id>", "for the tables of this namespace")
    .action(async (options: CatalogOptions & { readonly namespace?: string }) => {
      const { namespace } = options;
      const { manifests, clusters, runner_clusters } = await managementOf(options).listJobDefinitions({
        ...(namespace !== undefined && { id: parseIdentifier(namespace) }),
      });
      const ofKind = (kind: string, names: readonly string[]) => names.map((name) => ({ name, kind }));
      const found = [
        ...ofKind("manifest", manifests),
        ...ofKind("cluster, defined with Geneva", clusters),
        ...ofKind("cluster of the runner", runner_clusters),
      ];
      if (options.json) return void process.stdout.write(`${JSON.stringify(found)}\n`);
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
  if (attempt === undefined) return (await management.describeJobLog({ id: parseIdentifier(id) })).lines;
  const { attempts } = await management.listJobAttempts({ id: parseIdentifier(id) });
  const found = attempts.find(({ number }) => number === attempt);
  if (found === undefined) throw new Error(`job ${id} has no attempt ${attempt}. See: tiltyard jobs attempts ${id}`);
  return found.lines;
}

function timeOf(millis: number | undefined): string {
  return millis === undefined ? "" : new Date(millis).toISOString();
}

async function listJobs(management: ManagementClient, options: ListOptions): Promise<void> {
  const { namespace, table, principal, open, limit } = options;
  const { jobs } = await management.listJobs({
    ...(namespace !== undefined && { id: parseIdentifier(namespace) }),
    ...(table !== undefined && { table }),
    ...(principal !== undefined && { principal }),
    ...(open && { status: [...openStatuses] }),
    limit,
  });
  if (options.json) return void process.stdout.write(`${JSON.stringify(jobs)}\n`);
  const rows = jobs.map((job) => ({
    id: job.job_id,
    status: job.status,
    target: targetOf(job),
    progress: job.progress.rows_total === undefined ? waitingFor(job) : rowsText(job.progress),
    principal: job.principal,
    opened: timeOf(job.created_at_millis),
  }));
  printTable(options, rows, ["id", "status", "target", "progress", "principal", "opened"]);
}

/** Returns the target of a job: a table, and its column if the job fills one. */
function targetOf({ objects, parameters }: Job): string {
  const [table = []] = objects;
  return [table.join("$"), ...(parameters.column === undefined ? [] : [parameters.column])].join(" ");
}
