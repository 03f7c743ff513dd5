import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { developmentKeyFile } from "../../service/auth/reserved-keys.ts";
import { preparePython } from "../interop/tools.ts";
import { environmentWith } from "../support/process.ts";
import { createFolder } from "./folder.ts";
import { numbers, readArguments, upTo } from "./options.ts";
import { startTiltyard } from "./servers.ts";

const project = resolve(import.meta.dirname, "../..");
const program = join(import.meta.dirname, "jobs.py");

const Options = z.object({ rows: upTo(100_000_000).default(1_000_000), rounds: numbers.rounds.default(3) });

const Seconds = z.object({ first_row: z.number(), end: z.number() });
const Measured = z.object({ cold: Seconds, warm: Seconds, geneva: Seconds }).partial();
type Seconds = z.infer<typeof Seconds>;

/** Fills a column of many rows alternately by jobs and by Geneva alone on a separate Ray, and prints each duration. */
export async function measureJobs(args: readonly string[]): Promise<void> {
  const { rows, rounds } = readArguments(args, Options);
  const python = preparePython();
  const folder = createFolder();
  const all = { cold: [] as Seconds[], warm: [] as Seconds[], geneva: [] as Seconds[] };
  for (let round = 0; round < rounds; round += 1) {
    mkdirSync(join(folder, `geneva-${round}`));
    const geneva = () => run(python, ["geneva", join(folder, `geneva-${round}`), `${rows}`]);
    const measured = { ...(await fillByJobs(python, join(folder, `catalog-${round}`), rows)), ...(await geneva()) };
    for (const name of ["cold", "warm", "geneva"] as const) if (measured[name]) all[name].push(measured[name]);
  }
  process.stdout.write(`${rows} rows, seconds: the median (each round)\n`);
  print("first row of a runner's first job", all.cold, "first_row");
  print("first row of a warm job", all.warm, "first_row");
  print("first row of Geneva, Ray already up", all.geneva, "first_row");
  const [warm, geneva] = [print("warm job", all.warm, "end"), print("Geneva, Ray already up", all.geneva, "end")];
  process.stdout.write(`ratio: ${(warm / geneva).toFixed(2)}\n`);
}

/** @returns The median. */
function print(name: string, all: readonly Seconds[], what: keyof Seconds): number {
  const sorted = all.map((each) => each[what]).toSorted((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  process.stdout.write(`${name}: ${middle.toFixed(1)} (${all.map((each) => each[what].toFixed(1)).join(", ")})\n`);
  return middle;
}

/** Measures jobs in a new catalog, as Geneva has a new folder. */
async function fillByJobs(python: string, folder: string, rows: number): Promise<z.infer<typeof Measured>> {
  await using catalog = await startTiltyard(folder);
  await using _ = await startRunner(python, catalog.url, developmentKeyFile(folder));
  return await run(python, ["tiltyard", catalog.url, developmentKeyFile(folder), `${rows}`]);
}

async function startRunner(python: string, url: string, keyFile: string): Promise<AsyncDisposable> {
  const environment = {
    PATH: `${dirname(python)}:${process.env.PATH}`,
    TILTYARD_CATALOG_URL: url,
    TILTYARD_API_KEY: readFileSync(keyFile, "utf8").trim(),
  };
  const runner = spawn(process.execPath, ["runner/main.ts", "--local"], {
    cwd: project,
    env: environmentWith(environment),
    stdio: ["ignore", "ignore", "pipe"],
  });
  await printed(runner, "running the jobs of");
  return {
    [Symbol.asyncDispose]: async () => {
      runner.kill();
      await once(runner, "exit");
    },
  };
}

function printed(child: ChildProcess, text: string): Promise<void> {
  let all = "";
  return new Promise((resolve, reject) => {
    child.stderr?.setEncoding("utf8").on("data", (part: string) => {
      all += part;
      if (all.includes(text)) resolve();
    });
    child.once("exit", () => reject(new Error(`the runner ended: ${all}`)));
  });
}

/** Runs the program. @returns What its last line says. */
async function run(python: string, args: readonly string[]): Promise<z.infer<typeof Measured>> {
  const child = spawn(python, [program, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-4_000);
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} ${args[0]} ended with ${code}: ${stderr}`);
  return Measured.parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? ""));
}
