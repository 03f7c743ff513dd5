import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { createFolder } from "./folder.ts";
import { send } from "./load.ts";
import { numbers, pythonOf, readArguments } from "./options.ts";
import { readUsage } from "./process-usage.ts";
import { describeSurroundings, formatSurroundings } from "./report.ts";
import { constantRequest, describeTable } from "./scenarios.ts";
import { type Server, startBareHono, startReference, startTiltyard } from "./servers.ts";
import { count, mediansOf, row } from "./table.ts";
import { measureByWrk, type Requests } from "./wrk.ts";

const Options = z.object({
  rounds: numbers.rounds.default(5),
  tables: numbers.tables.default(1000),
  json: z.string().optional(),
});

/** The idle time between the first response of a server and the reading of its memory. */
const idleMs = 1_000;
const connections = 32;
const loadSeconds = 1;

/** A server that is started repeatedly over its stored data. */
interface Subject {
  readonly name: string;
  readonly start: () => Promise<Server>;
  readonly requests: Requests;
}

interface StartMeasurement {
  /** The time from the start of the process to its first response. */
  readonly firstAnswerMs: number;
  readonly idleMiB: number;
  /** The resident memory after some time of load. */
  readonly loadedMiB: number;
}

const figures = {
  firstAnswerMs: "first answer ms",
  idleMiB: "idle MiB",
  loadedMiB: "loaded MiB",
} as const satisfies Record<keyof StartMeasurement, string>;
const figureNames = Object.keys(figures) as (keyof StartMeasurement)[];
const widths = [26, 18, 12, 12];

/**
 * Prints the time from the start of a server's process to its first response, and the resident memory of its processes
 * when idle and after a second of load.
 */
export async function measureStart(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const options = readArguments(args, Options);
  const { rounds, tables } = options;
  const python = pythonOf(environment);
  const surroundings = describeSurroundings(python);
  process.stdout.write(
    `${formatSurroundings(surroundings)}\n${count(tables, "table")}, medians of ${count(rounds, "round")}; ` +
      `loaded: ${loadSeconds} s of ${count(connections, "connection")}\n\n`,
  );
  const subjects = await prepareSubjects(options, python);
  const measured = new Map(subjects.map(({ name }) => [name, [] as StartMeasurement[]]));
  for (let round = 0; round < rounds; round += 1)
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed())
      measured.get(subject.name)?.push(await measureOnce(subject));

  process.stdout.write(`${row(["", ...Object.values(figures)], widths)}\n`);
  const results = [...measured].map(([name, each]) => ({ name, medians: mediansOf(each, figureNames), rounds: each }));
  for (const { name, medians } of results)
    process.stdout.write(`${row([name, ...figureNames.map((figure) => medians[figure].toFixed(0))], widths)}\n`);
  if (options.json === undefined) return;
  const report = { date: new Date().toISOString(), surroundings, tables, connections, servers: results };
  writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
}

/** Creates the tables of each server once, which also loads its program into the page cache. */
async function prepareSubjects(options: z.infer<typeof Options>, python: string): Promise<readonly Subject[]> {
  const folder = createFolder();
  const [ours, theirs] = [join(folder, "tiltyard"), join(folder, "rest-adapter")];
  const fill = async (starting: Promise<Server>) => {
    await using server = await starting;
    const load = await describeTable.prepare(server, { connections, tables: options.tables });
    return { headers: server.headers, requests: await load.take({ seconds: loadSeconds, connections }) };
  };
  const { headers, requests } = await fill(startTiltyard(ours));
  const reference = await fill(startReference(theirs, python));
  return [
    { name: "Tiltyard", start: () => startTiltyard(ours, [], { headers }), requests },
    { name: "RestAdapter", start: () => startReference(theirs, python), requests: reference.requests },
    {
      name: "bare Hono",
      start: () => startBareHono(),
      requests: { list: [constantRequest], mayRepeat: true },
    },
  ];
}

async function measureOnce({ start, requests }: Subject): Promise<StartMeasurement> {
  const startedAt = performance.now();
  await using server = await start();
  await send(server, requests.list[0] ?? constantRequest);
  const firstAnswerMs = performance.now() - startedAt;
  await sleep(idleMs);
  const idleMiB = readUsage(server.pid).residentMiB;
  await measureByWrk(server, { connections, seconds: loadSeconds }, requests);
  const loadedMiB = readUsage(server.pid).residentMiB;
  return { firstAnswerMs, idleMiB, loadedMiB };
}
