import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { documentationPage } from "@tiltyard/protocol";
import { Command } from "commander";
import { createCatalogClient, createManagementClient } from "../catalog/catalog-client.ts";
import { CatalogRequestError } from "../catalog/errors.ts";
import { Companion } from "../ray/companion.ts";
import { unusedPort } from "../unused-port.ts";
import type { CatalogTarget } from "./catalog-target.ts";
import { exitCodes } from "./exit-codes.ts";
import { interruptible } from "./interruption.ts";
import { describeJob, describeProgress } from "./job-progress.ts";
import { findProgram } from "./other-program.ts";
import { log, Progress } from "./output.ts";
import { preparePython } from "./python-environment.ts";
import { startCatalog } from "./run-local.ts";

const table = "quickstart_films";
const column = "title_length";
const expression = "character_length(title)";
const rows = 1_000;
const pollMs = 500;
/** The port that later commands call by default; a free one instead if another program uses it. */
const catalogPort = 2333;

const openCatalog = `
import os, lance, lance.namespace, pyarrow as pa
key = {"header.x-api-key": os.environ["TILTYARD_API_KEY"]}
catalog = lance.namespace.RestNamespace(uri=os.environ["TILTYARD_CATALOG_URL"], **key)
`;
/** The script that creates the table. Any Lance client can create one; this one has four fragments. */
const createTable = `${openCatalog}
films = pa.table({"id": range(${rows}), "title": [f"Film number {number}" for number in range(${rows})]})
lance.write_dataset(films, namespace_client=catalog, table_id=["${table}"], mode="create", max_rows_per_file=${rows / 4})
`;

const readTable = `${openCatalog}
films = lance.dataset(namespace_client=catalog, table_id=["${table}"])
filled = films.count_rows("${column} IS NOT NULL")
print(f"{filled} of {films.count_rows()} rows have a ${column}; the first of them:")
for film in films.to_table(limit=3).to_pylist():
    print("  ", film)
`;

interface Options {
  readonly keep?: boolean;
}

/** Creates the command `quickstart`, which fills a column by a REST call on a machine with only Node and Python. */
export function quickstartCommand(): Command {
  return new Command("quickstart")
    .description("start the catalog, the runner and Ray on this machine, and fill a column by a REST call")
    .option("--keep", "leave the catalog and the runner up until Ctrl-C, for the console and for jobs of yours")
    .action((options: Options) => interruptible((signal) => quickstart(options, signal)));
}

async function quickstart({ keep = false }: Options, signal: AbortSignal): Promise<void> {
  using progress = new Progress();
  const runner = findProgram("runner");
  const python = await preparePython(join(dirname(runner), "job/requirements.txt"), progress, signal);
  progress.show("starting the catalog of this folder, data/");
  const port = Number(process.env.TILTYARD_PORT || catalogPort);
  await using started = await startCatalog(signal, await unusedPort(port));
  // The key of the environment may be that of another catalog.
  const catalog = { url: started.url, apiKey: started.developmentKey ?? started.apiKey };
  const environment = {
    ...process.env,
    PATH: `${python}:${process.env.PATH}`,
    TILTYARD_CATALOG_URL: catalog.url,
    ...(catalog.apiKey !== undefined && { TILTYARD_API_KEY: catalog.apiKey }),
  };
  progress.show("starting the runner, and Ray on this machine");
  const standby = keep ? [] : ["--standby-minutes", "0"];
  await using running = new Companion([process.execPath, runner, "--local", ...standby], environment);

  progress.show(`creating the table ${table} with ${rows} films`);
  await prepareTable(catalog, join(python, "python"), environment);
  const job = await post(catalog, `/v1/table/${table}/backfill_column`, { column });
  progress.end();
  log(`POST /v1/table/${table}/backfill_column {"column": "${column}"} answered ${JSON.stringify(job)}`);
  await untilEnded(catalog, String(job.job_id), running, progress, signal);
  showRows(join(python, "python"), environment);
  const { keyFile } = started;
  if (keep) {
    process.stdout.write(signIn(catalog.url, keyFile ?? "TILTYARD_API_KEY"));
    await untilStopped(running, signal);
  }
  log(`stopping Ray and the catalog at ${catalog.url}${keyFile ? `; its key remains in ${keyFile}` : ""}`);
  process.stdout.write(next);
}

async function prepareTable(catalog: CatalogTarget, python: string, env: NodeJS.ProcessEnv): Promise<void> {
  const client = createCatalogClient(catalog);
  await client.dropTable({ id: [table] }).catch((error) => {
    if (!(error instanceof CatalogRequestError && error.status === 404)) throw error;
  });
  const created = spawnSync(python, ["-c", createTable], { env });
  if (created.status !== 0) throw new Error(`The table could not be created: ${created.stderr}`);
  await post(catalog, `/v1/table/${table}/add_columns`, { new_columns: [{ name: column, computed: expression }] });
}

/** Sends the request that the guide sends with curl. */
async function post({ url, apiKey }: CatalogTarget, path: string, body: object): Promise<Record<string, unknown>> {
  const headers = { "content-type": "application/json", ...(apiKey !== undefined && { "x-api-key": apiKey }) };
  const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} responded with ${answer.status}: ${await answer.text()}`);
  return answer.json() as Promise<Record<string, unknown>>;
}

async function untilEnded(
  catalog: CatalogTarget,
  id: string,
  runner: Companion,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const management = createManagementClient(catalog);
  let reported = "";
  for (;;) {
    const job = await describeJob(management, id);
    const text = job.status === "Queued" ? "Queued: waiting for Ray" : describeProgress(job);
    if (text !== reported) progress.show(text);
    reported = text;
    if (job.status === "Succeeded") return;
    if (job.status === "Failed" || job.status === "Canceled") {
      process.exitCode = exitCodes.jobFailed;
      throw new Error(`The job is ${job.status}: ${job.reason}`);
    }
    if (runner.hasEnded) throw new Error(`The runner ended: ${runner.printed.trim()}`);
    await sleep(pollMs, undefined, { signal });
  }
}

/** Prints rows that a Lance client reads. */
function showRows(python: string, env: NodeJS.ProcessEnv): void {
  const shown = spawnSync(python, ["-c", readTable], { env });
  if (shown.status !== 0) throw new Error(`The rows could not be read: ${shown.stderr}`);
  process.stdout.write(shown.stdout);
}

/** Waits for Ctrl-C. @throws Error if the runner ends before. */
async function untilStopped(runner: Companion, signal: AbortSignal): Promise<void> {
  while (!runner.hasEnded) await sleep(pollMs, undefined, { signal });
  throw new Error(`The runner ended: ${runner.printed.trim()}`);
}

const signIn = (url: string, key: string) => `
The catalog and a runner are up until Ctrl-C. Open the console and sign in with the key:
  ${url}/console
  the key is ${key.endsWith(".key") ? "in " : "that of "}${key}
`;

const next = `
What to try next:
  tiltyard quickstart --keep        the same, and the console at its end
  tiltyard serve                    starts the catalog alone
  tiltyard runner --local           runs the catalog's jobs on this machine; needs Ray and Lance's clients
                                    in the Python of the PATH
  pip install geneva                columns that a Python function computes
${documentationPage("jobs")} explains both.
In a clone, npm run tiltyard -- ARGUMENTS is the command.
`;
