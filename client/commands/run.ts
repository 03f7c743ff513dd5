import { Command, Option } from "commander";
import { UsageError } from "./exit-codes.ts";
import { clusterLeftOver, interruptible } from "./interruption.ts";
import { addJobOptions, type JobOptions, jobRequest, trackingOf } from "./job-options.ts";
import { makeCluster } from "./make-cluster.ts";
import { type JsonOption, jsonOption, log } from "./output.ts";
import { runJob } from "./run-job.ts";
import { runLocally } from "./run-local.ts";
import { addTargetOptions, readTarget } from "./target.ts";

/** Creates the command `run`, which creates a Ray cluster for one command. */
export function runCommand(): Command {
  return addJobOptions(addTargetOptions(new Command("run")))
    .description("create a Ray cluster, run a command on it, and delete the cluster")
    .argument("<command...>", "the command to run, after --")
    .addOption(
      new Option("--local", "start a Ray and the catalog on this machine for the command; no Kubernetes").conflicts([
        ...["file", "stackOutputs", "namespace", "context", "configMethod"],
      ]),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Examples:
  tiltyard run --local -w . -- python backfill.py
  tiltyard run -f cluster.yaml -w . -- python backfill.py
  tiltyard run -f cluster.yaml --stack-outputs outputs.json --url http://127.0.0.1:2333 \\
    --table 'prod$films' --column embedding -w . -- python backfill.py

Exit codes: 0 the job succeeded, 3 it failed, 4 it was stopped, 2 the parameters are not valid, 1 anything else.`,
    )
    .action(async (command: readonly string[], options: JobOptions & JsonOption & { readonly local?: boolean }) => {
      if (options.local) return runLocally(command, options);
      if (options.file === undefined)
        throw new UsageError("describe the Ray cluster with -f FILE, or run the command on this machine with --local");
      const parameters = readTarget(options);
      const tracking = trackingOf(options);
      await interruptible(async (signal) => {
        await using cluster = await makeCluster(parameters, signal);
        log(`the Ray cluster ${cluster.name} is ready; dashboard: ${cluster.dashboardUrl}`);
        await runJob(cluster.jobs, jobRequest(command, options), { ...options, tracking, signal });
        log(`deleting the Ray cluster ${cluster.name}`);
      }, clusterLeftOver);
    });
}
