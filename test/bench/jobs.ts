import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { developmentKeyFile } from "../../service/auth/reserved-keys.ts";
import { preparePython } from "../interop/tools.ts";
import { environmentWith } from "../support/process.ts";
import { makeFolder } from "./folder.ts";
import { numbers, readArguments, upTo } from "./options.ts";
import { startTiltyard } from "./servers.ts";

const project = resolve(import.meta.dirname, "../..");
const program = join(import.meta.dirname, "jobs.py");

const Options = z.object({ rows: upTo(100_000_000).default(1_000_000), rounds: numbers.rounds.default(3) });

/** Fills a column of many rows alternately by a job and by Geneva alone on a separate Ray, and prints each duration. */
export async function measureJobs(args: readonly string[]): Promise<void> {
  const { rows, rounds } = readArguments(args, Options);
  const python = preparePython();
  const folder = makeFolder();
  const seconds = { tiltyard: [] as number[], geneva: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    seconds.tiltyard.push(await fillByJob(python, join(folder, `catalog-${round}`), rows));
    mkdirSync(join(folder, `geneva-${round}`));
    seconds.geneva.push(await run(python, ["geneva", join(folder, `geneva-${round}`), `${rows}`]));
  }
  for (const [name, all] of Object.entries(seconds)) {
    const middle = all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
    const each = all.map((one) => one.toFixed(1)).join(", ");
    process.stdout.write(`${name}: ${middle.toFixed(1)} s (${each}), ${Math.round(rows / middle)} rows/s\n`);
  }
}

/** Measures one job in a new catalog, as Geneva has a new folder. The measurement begins when the runner's Ray is ready. */
async function fillByJob(python: string, folder: string, rows: number): Promise<number> {
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

/** Runs the program. @returns The last number that it prints. */
async function run(python: string, args: readonly string[]): Promise<number> {
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
  return Number(stdout.trim().split("\n").at(-1));
}
