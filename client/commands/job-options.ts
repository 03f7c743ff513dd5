import { statSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { createCatalogClient, createManagementClient } from "../catalog/catalog-client.ts";
import type { JobRequest } from "../ray/jobs.ts";
import type { Tracking } from "../ray/tracked-job.ts";
import { type CatalogTarget, catalogTarget } from "./catalog-target.ts";
import { UsageError } from "./exit-codes.ts";
import { readIdentifier } from "./identifier.ts";
import type { TargetOptions } from "./target.ts";

/** The options of a job. */
export interface JobOptions extends TargetOptions {
  readonly workingDir?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly pip?: readonly string[];
  readonly submissionId?: string;
  readonly entrypointNumCpus?: number;
  readonly entrypointNumGpus?: number;
  readonly table?: string;
  readonly column?: string;
  readonly transaction?: string;
}

export function addJobOptions(command: Command): Command {
  return command
    .option("-w, --working-dir <folder>", "upload this folder, and run the command in it", folder)
    .option("-e, --env <NAME=VALUE>", "a variable of the job; repeatable", collectVariable)
    .option("--pip <package>", "a Python package of the job; repeatable", collect)
    .option("--entrypoint-num-cpus <number>", "CPUs of the command itself, which then runs on a worker", amount)
    .option("--entrypoint-num-gpus <number>", "GPUs of the command itself, which then runs on a worker", amount)
    .option("--submission-id <id>", "the job's id; a random one when absent")
    .option("--url <url>", "the catalog that records the job; or TILTYARD_CATALOG_URL. Its key: TILTYARD_API_KEY")
    .option("--table <id>", "the table whose column the job fills, e.g. 'prod$films'")
    .option("--column <name>", "that column")
    .option("--transaction <id>", "an open transaction, instead of a table and a column");
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function collectVariable(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, name, value = ""] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(text) ?? [];
  if (name === undefined) throw new InvalidArgumentError("It must be NAME=VALUE.");
  return { ...before, [name]: value };
}

function amount(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0)
    throw new InvalidArgumentError("It must be a number, 0 or more.");
  return value;
}

/** Validates a folder before a Ray cluster is created for the job. */
function folder(path: string): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw new InvalidArgumentError("It must be a folder.");
  return path;
}

export function jobRequest(command: readonly string[], options: JobOptions): JobRequest {
  const { workingDir, env, pip, submissionId, entrypointNumCpus, entrypointNumGpus } = options;
  return {
    entrypoint: command.map(quote).join(" "),
    ...(workingDir !== undefined && { workingDirectory: workingDir }),
    ...(submissionId !== undefined && { submissionId }),
    ...(entrypointNumCpus !== undefined && { entrypointNumCpus }),
    ...(entrypointNumGpus !== undefined && { entrypointNumGpus }),
    runtimeEnv: { ...(env && { env_vars: env }), ...(pip && { pip }) },
  };
}

/** Quotes an argument, because Ray runs the command line in a shell. */
function quote(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}

/** Returns the tracking that the options specify. @throws UsageError */
export function trackingOf(
  options: JobOptions,
  target: CatalogTarget | undefined = catalogTarget(options),
): Tracking | undefined {
  const { table, column, transaction } = options;
  if (table === undefined && column === undefined && transaction === undefined) return undefined;
  if (target === undefined)
    throw new UsageError("--table, --column and --transaction need a catalog: --url URL, or TILTYARD_CATALOG_URL");
  const catalog = createCatalogClient(target);
  if (transaction !== undefined) return { catalog, transactionId: transaction };
  if (table === undefined || column === undefined) throw new UsageError("--table and --column require each other");
  return { catalog, management: createManagementClient(target), table: readIdentifier(table), column };
}
