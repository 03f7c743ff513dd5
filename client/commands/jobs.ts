import { setTimeout as sleep } from "node:timers/promises";
import { type Job, parseIdentifier } from "@tiltyard/protocol";
import { Command, Option } from "commander";
import { createManagementClient, type ManagementClient } from "../catalog/catalog-client.ts";
import { CatalogConnectionError, CatalogRequestError } from "../catalog/errors.ts";
import { exitCodes, UsageError } from "./exit-codes.ts";
import { interruptible } from "./interruption.ts";
import { bar, type JsonOption, jsonOption, Progress, print, printTable } from "./output.ts";
import { catalogTarget } from "./target.ts";

interface Options extends JsonOption {
  readonly catalog?: string;
}

interface ListOptions extends Options {
  readonly namespace?: string;
  readonly table?: string;
  readonly principal?: string;
  readonly open?: boolean;
  readonly limit: number;
}

const pollMs = 1_000;

/** `jobs`: those of the catalog, which its runner runs. */
export function jobsCommand(): Command {
  const jobs = new Command("jobs").description("the catalog's jobs: list, watch, cancel and try them again");

  add(jobs, "list", "list jobs, latest first")
    .option("-n, --namespace <id>", "only those of this namespace and what is under it")
    .option("--table <id>", "only those on this table, e.g. 'prod$films'")
    .option("--principal <name>", "only those that this principal asked for")
    .option("--open", "only those that have not ended")
    .addOption(new Option("--limit <number>", "how many at most").default(20).argParser(Number))
    .action((options: ListOptions) => listJobs(managementOf(options), options));

  addOfOne(jobs, "describe", "tell all that is known of a job").action(async (id: string, options: Options) => {
    const job = await describe(managementOf(options), id);
    print(options, job, JSON.stringify(job, null, 2));
  });

  addOfOne(jobs, "watch", "show how far a job is until it has ended")
    .addHelpText(
      "after",
      "\nExit codes: 0 the job succeeded, 3 it failed, 4 it was canceled, 1 anything else. Ctrl-C leaves the job alone.",
    )
    .action((id: string, options: Options) =>
      interruptible((signal) => watch(managementOf(options), id, options, signal)),
    );

  addOfOne(jobs, "cancel", "cancel a job; what runs of it ends within seconds").action(
    async (id: string, options: Options) => {
      const { job } = await managementOf(options).cancelJob({ id: parseIdentifier(id) });
      print(options, job, `job ${id} is ${job.status}`);
    },
  );

  addOfOne(jobs, "retry", "open a job again that has failed or was canceled").action(
    async (id: string, options: Options) => {
      const { job_id } = await managementOf(options).retryJob({ id: parseIdentifier(id) });
      print(options, { job_id }, job_id);
    },
  );

  addOfTable(jobs, "compact", "make few large fragments of many small ones")
    .addOption(number("--target-rows <number>", "rows of a fragment"))
    .action((table: string, options: Options & { readonly targetRows?: number }) =>
      open(options, (management) =>
        management.compactTable({ id: parseIdentifier(table), target_rows_per_fragment: options.targetRows }),
      ),
    );

  addOfTable(jobs, "index", "build an index, anew where there is one of its name")
    .requiredOption("--column <name>", "the column")
    .requiredOption("--type <type>", "e.g. BTREE, BITMAP, FTS, IVF_FLAT, IVF_PQ")
    .option("--name <name>", "of the index; the column with _idx when absent")
    .action((table: string, options: Options & { readonly column: string; readonly type: string; name?: string }) =>
      open(options, (management) =>
        management.buildTableIndex({
          id: parseIdentifier(table),
          column: options.column,
          index_type: options.type,
          name: options.name,
        }),
      ),
    );

  addOfTable(jobs, "clean-up", "delete old versions, and the files that only they had")
    .addOption(number("--older-than <seconds>", "versions that were committed longer ago; 14 days when absent"))
    .addOption(number("--keep <number>", "how many of the latest versions stay however old"))
    .action((table: string, options: Options & { readonly olderThan?: number; readonly keep?: number }) =>
      open(options, (management) =>
        management.cleanUpTable({
          id: parseIdentifier(table),
          older_than_seconds: options.olderThan,
          keep_versions: options.keep,
        }),
      ),
    );

  addOfOne(jobs, "logs", "show the last lines that a job has printed").action(async (id: string, options: Options) => {
    const { lines } = await managementOf(options).describeJobLog({ id: parseIdentifier(id) });
    print(options, lines, lines.join("\n"));
  });
  return jobs;
}

function add(to: Command, name: string, description: string): Command {
  return to
    .command(name)
    .description(description)
    .option("--catalog <url>", "the catalog; or TILTYARD_CATALOG_URL. Its key: TILTYARD_API_KEY")
    .addOption(jsonOption());
}

function addOfOne(to: Command, name: string, description: string): Command {
  return add(to, name, description).argument("<id>", "the job's id, as the catalog answered it");
}

function addOfTable(to: Command, name: string, description: string): Command {
  return add(to, name, `${description}; prints the job's id`).argument(
    "<table>",
    "the table's identifier, e.g. 'prod$films'",
  );
}

function number(flags: string, description: string): Option {
  return new Option(flags, description).argParser(Number);
}

async function open(options: Options, request: (management: ManagementClient) => Promise<{ readonly job_id: string }>) {
  const { job_id } = await request(managementOf(options));
  print(options, { job_id }, job_id);
}

/** @throws UsageError */
function managementOf(options: Options): ManagementClient {
  const target = catalogTarget(options);
  if (target === undefined) throw new UsageError("name the catalog: --catalog URL, or TILTYARD_CATALOG_URL");
  return createManagementClient(target);
}

async function describe(management: ManagementClient, id: string): Promise<Job> {
  return (await management.describeJob({ id: parseIdentifier(id) })).job;
}

async function listJobs(management: ManagementClient, options: ListOptions): Promise<void> {
  const { namespace, table, principal, open, limit } = options;
  const { jobs } = await management.listJobs({
    ...(namespace !== undefined && { id: parseIdentifier(namespace) }),
    ...(table !== undefined && { table }),
    ...(principal !== undefined && { principal }),
    ...(open && { status: ["Queued", "Running"] }),
    limit,
  });
  if (options.json) return void process.stdout.write(`${JSON.stringify(jobs)}\n`);
  const rows = jobs.map((job) => ({
    id: job.job_id,
    status: job.status,
    target: targetOf(job),
    progress: job.progress.rows_total === undefined ? waitingFor(job) : countOf(job.progress),
    principal: job.principal,
    opened: new Date(job.created_at_millis).toISOString(),
  }));
  printTable(options, rows, ["id", "status", "target", "progress", "principal", "opened"]);
}

/** What a job fills: a table, and its column if it fills one. */
function targetOf({ objects, parameters }: Job): string {
  const [table = []] = objects;
  return [table.join("$"), ...(parameters.column === undefined ? [] : [parameters.column])].join(" ");
}

/** Follows a job over a catalog that starts anew, until it has ended. */
async function watch(management: ManagementClient, id: string, options: Options, signal: AbortSignal): Promise<void> {
  using progress = new Progress();
  let told = "";
  for (;;) {
    const job = await describe(management, id).catch((error) => {
      const isAway = error instanceof CatalogRequestError && error.status >= 500;
      if (isAway || error instanceof CatalogConnectionError) return undefined;
      throw error;
    });
    const text = job === undefined ? "the catalog gives no answer; still trying" : describeProgress(job);
    if (text !== told) progress.tell(text);
    told = text;
    if (job !== undefined && job.status !== "Queued" && job.status !== "Running") {
      progress.end();
      print(options, job, `${job.status}${job.reason === undefined ? "" : `: ${job.reason}`}`);
      process.exitCode = exitCodeOf(job);
      return;
    }
    await sleep(pollMs, undefined, { signal });
  }
}

function exitCodeOf({ status }: Job): number {
  if (status === "Failed") return exitCodes.jobFailed;
  return status === "Canceled" ? exitCodes.jobStopped : exitCodes.ok;
}

/** E.g. `Running [#####---------------] 250/1000 rows, 50 rows/s, 15 s left`. */
export function describeProgress(job: Job): string {
  const { rows_committed: committed = 0, rows_total: total, rows_per_second: rate } = job.progress;
  const attempt = job.attempt > 1 ? ` (attempt ${job.attempt})` : "";
  if (total === undefined) return [`${job.status}${attempt}`, waitingFor(job)].filter((text) => text !== "").join(": ");
  const isRunning = job.status === "Running" && rate !== undefined && rate > 0;
  const left = isRunning ? [`${rate} rows/s`, `${durationOf((total - committed) / rate)} left`] : [];
  return `${job.status}${attempt} ${bar(committed, total)} ${[countOf(job.progress), ...left].join(", ")}`;
}

/** What a job that has not ended waits for, or what its latest attempt fell over. */
function waitingFor({ status, reason = "" }: Job): string {
  return status === "Queued" || status === "Running" ? reason : "";
}

function countOf({ rows_committed = 0, rows_total = 0 }: Job["progress"]): string {
  return `${rows_committed}/${rows_total} rows`;
}

function durationOf(seconds: number): string {
  if (seconds < 120) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
