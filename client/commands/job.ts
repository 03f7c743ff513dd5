import { messageOf } from "@tiltyard/protocol";
import { Command, Option } from "commander";
import { JobError } from "../ray/dashboard.ts";
import { JobsApi } from "../ray/jobs.ts";
import type { OpenJobs } from "../ray/open-jobs.ts";
import { submitInTransaction } from "../ray/tracked-job.ts";
import { UsageError } from "./exit-codes.ts";
import { interruptible } from "./interruption.ts";
import { addJobOptions, type JobOptions, jobRequest, trackingOf } from "./job-options.ts";
import { type JsonOption, jsonOption, print, printTable, timeOf } from "./output.ts";
import { exitCodeOf, runJob, showLogs } from "./run-job.ts";
import { addTargetOptions, httpUrl, rayToken, readTarget, type TargetOptions } from "./target.ts";

const responseTimeoutMs = 30_000;

interface Options extends TargetOptions, JsonOption {
  readonly cluster?: string;
  readonly address?: string;
}

/** Creates the command `ray` with the commands on Ray itself. */
export function rayCommand(): Command {
  return new Command("ray").description("submit jobs to a Ray cluster").addCommand(rayJobCommand());
}

function rayJobCommand(): Command {
  const job = new Command("job").description("submit jobs to an existing Ray cluster, follow and stop them");

  addJobOptions(addClusterOptions(job.command("submit")))
    .description("submit a command, and follow it until it ends")
    .argument("<command...>", "the command to run, after --")
    .option("--no-wait", "submit it, print its id, and exit; an open transaction stays Running")
    .addHelpText("after", "\nExample:\n  tiltyard ray job submit --cluster embeddings -w . -- python backfill.py")
    .action(async (command: readonly string[], options: Options & JobOptions & { readonly wait: boolean }) => {
      const tracking = trackingOf(options);
      const isTransaction = tracking === undefined || "transactionId" in tracking;
      if (!options.wait && !isTransaction)
        throw new UsageError("--no-wait: the command cannot update the transaction of a job that it does not wait for");
      await interruptible(async (signal) => {
        await using opened = await open(options);
        const request = jobRequest(command, options);
        if (options.wait) {
          await runJob(opened.jobs, request, { ...options, tracking, signal });
        } else {
          const { id } =
            tracking === undefined
              ? await opened.jobs.submit(request)
              : (await submitInTransaction(opened.jobs, request, tracking)).job;
          print(options, { submission_id: id }, id);
        }
      });
    });

  addClusterOptions(job.command("list"))
    .description("list the jobs of a Ray cluster")
    .action(async (options: Options) => {
      await using opened = await open(options);
      const rows = (await opened.jobs.list()).map((each) => ({
        // A job that started with ray.init() instead of a submission has a different kind of id.
        id: each.submission_id ?? each.job_id ?? "",
        status: each.status,
        started: timeOf(each.start_time ?? undefined),
        command: each.entrypoint,
      }));
      printTable(options, rows, ["id", "status", "started", "command"]);
    });

  addClusterOptions(job.command("status"))
    .description("show the status of a job; the exit code depends on its outcome")
    .argument("<id>")
    .action(async (id: string, options: Options) => {
      await using opened = await open(options);
      const details = await opened.jobs.details(id);
      print(options, details, `${details.status}${details.message ? `: ${details.message}` : ""}`);
      process.exitCode = exitCodeOf(details);
    });

  addClusterOptions(job.command("logs"))
    .description("print the output of a job")
    .argument("<id>")
    .addOption(new Option("--follow", "follow the output until the job ends").conflicts("json"))
    .action(async (id: string, options: Options & { readonly follow?: boolean }) => {
      await interruptible(async (signal) => {
        await using opened = await open(options);
        if (options.follow) await showLogs(opened.jobs.get(id), process.stdout, signal);
        else {
          const output = await opened.jobs.output(id);
          const lines = output.replace(/\n$/, "").split("\n");
          process.stdout.write(options.json ? `${JSON.stringify(output === "" ? [] : lines)}\n` : output);
        }
      });
    });

  addClusterOptions(job.command("stop"))
    .description("stop a job")
    .argument("<id>")
    .action(async (id: string, options: Options) => {
      await using opened = await open(options);
      await opened.jobs.stop(id);
      print(options, { submission_id: id }, `Stopping ${id}`);
    });

  return job;
}

function addClusterOptions(command: Command): Command {
  return addTargetOptions(command)
    .option("-c, --cluster <name>", "the Ray cluster; the one in the file when absent")
    .option(
      "--address <url>",
      "Ray's dashboard, instead of a cluster on Kubernetes. Its token, if it requires one: RAY_AUTH_TOKEN",
    )
    .addOption(jsonOption());
}

async function open(options: Options): Promise<OpenJobs> {
  if (options.address !== undefined) {
    const url = httpUrl(options.address, "Ray's dashboard");
    await requireResponse(url);
    return { jobs: new JobsApi(url, rayToken()), [Symbol.asyncDispose]: async () => {} };
  }
  if (options.cluster === undefined && options.file === undefined)
    throw new UsageError("name the Ray cluster with -c NAME, -f FILE or --address URL");
  const parameters = readTarget(options, options.cluster);
  const { openJobs } = await import("../ray/open-jobs.ts");
  return openJobs(parameters);
}

/** Requires that a server responds. The requests of jobs would repeat a wrong URL for a minute. @throws JobError */
async function requireResponse(url: string): Promise<void> {
  const { request } = await import("undici");
  try {
    const { body } = await request(url, { headersTimeout: responseTimeoutMs });
    await body.dump();
  } catch (cause) {
    throw new JobError(`no dashboard of Ray answers at ${url}: ${messageOf(cause)}`, { cause });
  }
}
