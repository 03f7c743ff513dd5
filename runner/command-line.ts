import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createManagementClient, httpUrl, JobsApi, requiredCatalog, UsageError } from "@tiltyard/client";
import { ParameterError } from "@tiltyard/platform";
import { documentationPage, formatError, printable } from "@tiltyard/protocol";
import { onNpmExit } from "@tiltyard/protocol/parent";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { type Environment, readConfig } from "./config.ts";
import { asText } from "./job-text.ts";
import { CatalogJobs } from "./jobs.ts";
import { KeptRay } from "./local-ray.ts";
import { type KubernetesOptions, openRayJobs } from "./open-rayjobs.ts";
import { RayPlatform } from "./ray-platform.ts";
import { Reconciler } from "./reconcile.ts";
import { backoff, repeat } from "./repeat.ts";
import { version } from "./version.ts";

interface Options extends KubernetesOptions {
  readonly local?: boolean;
  readonly standbyMinutes: number;
  readonly address?: string;
  readonly url?: string;
  readonly numCpus?: number;
  readonly maxJobs: number;
  readonly maxJobsPerPrincipal: number;
  readonly attempts: number;
  readonly leaseSeconds: number;
  readonly capacityTimeoutMinutes: number;
  readonly aliveFile?: string;
}

const pauseMs = { passes: 1_000, reaping: 30_000 };
const cancelGraceMs = 6_000;
const finalMs = 5_000;
/** The time in which a stopping runner may still call the catalog. */
const handOverTimeoutMs = 2_000;
/** The time in which another runner may still submit an attempt that it has claimed. */
const resubmitMs = 5_000;
/** The time in which the packages of a manifest should be installed. */
const startTimeoutMs = 15 * 60_000;
/**
 * The ratio of the time before a takeover to the lease, after which an attempt without a heartbeat stops itself. It
 * ensures that two attempts never run at once.
 */
const heartbeatTimeoutFactor = 1.5;
/** The options that have no effect on a Ray outside Kubernetes. */
const kubernetesOptions: (keyof KubernetesOptions)[] = ["stackOutputs", "file", "queue"];

/**
 * Runs a command line with the streams and the environment of this process and sets the exit code. Prints errors. The
 * runner runs until the process receives a signal to stop.
 *
 * @param args The arguments without the name of the program.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  try {
    await tiltyardRunner().parseAsync(args, { from: "user" });
  } catch (error) {
    // The exit code of an invalid command line or file is 2, as in `tiltyard`. Commander has already printed its errors.
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
    else {
      log(formatError(error));
      process.exitCode = error instanceof UsageError || error instanceof ParameterError ? 2 : 1;
    }
  }
}

function tiltyardRunner(): Command {
  return new Command("tiltyard runner")
    .description("run the catalog's jobs on Ray")
    .version(version)
    .addOption(new Option("--local", "start a Ray on this machine").conflicts(["address", ...kubernetesOptions]))
    .option(
      "--standby-minutes <number>",
      "with --local: how long a process waits for the next job; 0 for none",
      countOrZero,
      10,
    )
    .option("--stack-outputs <file>", "use the Kubernetes of this stack: what `pulumi stack output --json` printed")
    .option("-f, --file <file>", `the Ray clusters of jobs, as YAML: ${documentationPage("jobs")}`)
    .option("--queue <name>", "a queue of Kueue that admits the RayJobs")
    .addOption(
      new Option("--address <url>", "use the Ray with this dashboard; its token: RAY_AUTH_TOKEN").conflicts(
        kubernetesOptions,
      ),
    )
    .option("--url <url>", "the catalog; default: TILTYARD_CATALOG_URL, the default profile, the one of this machine")
    .option("--num-cpus <number>", "CPUs of the Ray that is started; those of the machine when absent", count)
    .option("--max-jobs <number>", "the most jobs at a time", count, 2)
    .option("--max-jobs-per-principal <number>", "the maximum number of concurrent jobs of one principal", count, 2)
    .option("--attempts <number>", "the maximum number of attempts of a job", count, 3)
    .option("--lease-seconds <number>", "how long an attempt runs without an accepted heartbeat", count, 60)
    .option("--capacity-timeout-minutes <number>", "how long an attempt waits for nodes or workers", count, 60)
    .option("--alive-file <file>", "a file to write after each pass, for a liveness probe")
    .action(run)
    .showHelpAfterError("(see --help)")
    .exitOverride();
}

function reportAlive({ aliveFile }: Options): void {
  if (aliveFile !== undefined) writeFileSync(aliveFile, "");
}

function count(text: string): number {
  if (text.trim() === "0") throw new InvalidArgumentError("It must be a whole number above 0.");
  return countOrZero(text);
}

function countOrZero(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError("It must be a whole number.");
  return value;
}

async function run(options: Options): Promise<void> {
  const stopped = new AbortController();
  const { signal } = stopped;
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stopped.abort());
  using _ = onNpmExit(() => stopped.abort());
  const environment = readConfig(process.env);
  const catalog = catalogOf(options);
  let reconciler: Reconciler | undefined;
  // It runs after the end of the Ray that this process started, so that no attempt on it still runs.
  await using _handOver = {
    [Symbol.asyncDispose]: async () => {
      if (options.local !== true) return;
      await Promise.race([reconciler?.handOver(), sleep(handOverTimeoutMs)]).catch((error) => log(formatError(error)));
    },
  };
  await using ray = rayOf(options, environment, signal);
  const where = { catalogUrl: catalog.url, leaseSeconds: options.leaseSeconds };
  const standbyMs = options.standbyMinutes * 60_000;
  const rayPlatform = ray === undefined ? undefined : new RayPlatform({ ...where, standbyMs, ray: () => ray.get() });
  const { platform, reap } =
    rayPlatform === undefined
      ? await openRayJobs(options, where, log)
      : { platform: rayPlatform, reap: async () => {} };
  const jobs = new CatalogJobs(createManagementClient(catalog));
  const started = new Reconciler(
    { jobs, platform },
    {
      attempts: options.attempts,
      jobs: options.maxJobs,
      jobsPerPrincipal: options.maxJobsPerPrincipal,
      heartbeatTimeoutMs: options.leaseSeconds * 1_000 * heartbeatTimeoutFactor,
      cancelGraceMs,
      finalMs,
      resubmitMs,
      retry: backoff,
      startTimeoutMs,
      capacityTimeoutMs: options.capacityTimeoutMinutes * 60_000,
    },
    ({ job, text }) => logOfJob(`job ${job}: ${text}`),
    signal,
  );
  reconciler = started;
  try {
    await platform.list();
    log(`running the jobs of ${catalog.url}, from ${catalog.from}`);
    await Promise.all([
      repeat(
        async () => {
          await started.reconcile();
          await rayPlatform?.prepare();
        },
        // A process that waits for a job starts it sooner than the next pass.
        {
          pauseMs: pauseMs.passes,
          signal,
          log,
          passed: () => reportAlive(options),
          wake: async () => rayPlatform?.isPrepared === true && jobs.hasNew(),
        },
      ),
      repeat(() => reap(logOfJob), { pauseMs: pauseMs.reaping, signal, log }),
    ]);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    stopped.abort();
  }
}

/** Returns the specified Ray or one that is started here; undefined on Kubernetes, where each job has a separate one. */
function rayOf({ address, local, numCpus }: Options, environment: Environment, signal: AbortSignal) {
  if (address !== undefined) {
    const dashboardUrl = httpUrl(address, "Ray's dashboard");
    const named = { dashboardUrl, jobs: new JobsApi(dashboardUrl, environment.rayToken) };
    return { get: async () => named, [Symbol.asyncDispose]: async () => {} };
  }
  return local === true ? new KeptRay({ env: environment.forRay, numCpus, signal, log }) : undefined;
}

/** Returns the catalog that the commands of `tiltyard` call, with a key. @throws Error without a key. */
function catalogOf(options: Options) {
  const { url, apiKey, from } = requiredCatalog(options);
  if (apiKey === undefined) throw new Error("set TILTYARD_API_KEY to a key of the catalog with the role runner");
  return { url, apiKey, from };
}

function log(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Logs one line. Members of a namespace choose a part of its text and must not forge lines about other jobs. */
function logOfJob(text: string): void {
  log(printable(asText(text), ""));
}
