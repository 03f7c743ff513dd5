import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { makeFolder } from "./folder.ts";
import { numbers, pythonOf, readArguments, scenarioNamed, upTo } from "./options.ts";
import { describeSurroundings, formatSurroundings } from "./report.ts";
import type { PreparedLoad } from "./scenarios.ts";
import { type Server, startReference, startTiltyard } from "./servers.ts";
import { count, median, mediansOf, percent, row } from "./table.ts";
import { measureByVegeta, prepareVegeta, type RateLoad, type RateMeasurement } from "./vegeta.ts";
import { measureByWrk } from "./wrk.ts";

/** Of the most that RestAdapter answers. */
const partOfMost = 0.8;
const warmUpSeconds = 6;

const Options = z.object({
  rounds: numbers.rounds.default(5),
  seconds: numbers.seconds.default(5),
  connections: upTo(1000).default(32),
  processes: numbers.processes.default([1]),
  tables: numbers.tables.default(1000),
  only: z.string().default("describe-table").transform(scenarioNamed),
  json: z.string().optional(),
});

const figures = ["requestsPerSecond", "p50Ms", "p99Ms", "longestMs", "cpuUsPerRequest", "loadBusy", "lateMs"] as const;
const columns = ["", "requests/s", "p50 ms", "p99 ms", "longest ms", "CPU us", "load", "late ms"];
const widths = [26, 12, 10, 10, 12, 10, 8, 10];

interface Subject {
  readonly name: string;
  readonly server: Server;
  readonly load: PreparedLoad;
  readonly measured: RateMeasurement[];
}

/**
 * Prints how long answers take when the same number of requests a second is sent to the catalog and to RestAdapter,
 * however slow they are: 80 % of the most that RestAdapter answers, which the same run measures first.
 */
export async function measureRate(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const options = readArguments(args, Options);
  const { rounds, seconds, connections, processes, tables, only: scenario } = options;
  const python = pythonOf(environment);
  // To make it takes both cores for some seconds.
  prepareVegeta();
  const surroundings = describeSurroundings(python);
  process.stdout.write(
    `${formatSurroundings(surroundings)}\n${scenario.name}: ${count(tables, "table")}, ${count(connections, "connection")}, ` +
      `medians of ${count(rounds, "round")} of ${seconds} s\n\n`,
  );

  const folder = makeFolder();
  await using servers = new AsyncDisposableStack();
  const add = async (name: string, starting: Promise<Server>): Promise<Subject> => {
    const server = servers.use(await starting);
    return { name, server, load: await scenario.prepare(server, { connections, tables }), measured: [] };
  };
  const ours = [];
  for (const each of processes) {
    const starting = startTiltyard(join(folder, `tiltyard-${each}`), [], { processes: each });
    ours.push(await add(`Tiltyard, ${count(each, "process")}`, starting));
  }
  const reference = await add("RestAdapter", startReference(join(folder, "rest-adapter"), python));
  const subjects = [...ours, reference];

  for (const subject of subjects) await measureMost(subject, { connections, seconds: warmUpSeconds });
  const most = [];
  for (let round = 0; round < rounds; round += 1) most.push(await measureMost(reference, { connections, seconds }));
  const rate = Math.round(median(most) * partOfMost);
  process.stdout.write(
    `RestAdapter answers ${Math.round(median(most)).toLocaleString("en")} requests/s at the most; ` +
      `${partOfMost * 100} % of that: ${rate.toLocaleString("en")} requests/s\n\n${row(columns, widths)}\n`,
  );
  for (let round = 0; round < rounds; round += 1)
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed())
      subject.measured.push(await measureAtRate(subject, { rate, connections, seconds }));

  const theirs = mediansOf(reference.measured, figures);
  for (const subject of subjects) process.stdout.write(`${formatSubject(subject)}\n`);
  for (const subject of ours) {
    const medians = mediansOf(subject.measured, figures);
    const times = figures.slice(1, 5).map((figure) => `${(theirs[figure] / medians[figure]).toFixed(1)}x`);
    process.stdout.write(`${row([`  RestAdapter / ${subject.name}`, "", ...times], [32, 6, ...widths.slice(2)])}\n`);
  }
  if (options.json === undefined) return;
  const results = subjects.map(({ name, measured }) => ({ name, rounds: measured }));
  const report = { date: new Date().toISOString(), surroundings, scenario: scenario.name, tables, connections };
  writeFileSync(options.json, `${JSON.stringify({ ...report, most, rate, servers: results }, null, 2)}\n`);
}

/** Requests a second, when each connection always has one. */
async function measureMost({ server, load }: Subject, of: { connections: number; seconds: number }): Promise<number> {
  const measured = await measureByWrk(server, of, await load.take(of));
  load.sent?.(measured.sent);
  return measured.requestsPerSecond;
}

async function measureAtRate({ name, server, load }: Subject, of: RateLoad): Promise<RateMeasurement> {
  try {
    const measured = await measureByVegeta(server, of, await load.take(of));
    load.sent?.(measured.sent);
    return measured;
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

function formatSubject(subject: Subject): string {
  const medians = mediansOf(subject.measured, figures);
  const cells = [
    `  ${subject.name}`,
    Math.round(medians.requestsPerSecond).toLocaleString("en"),
    medians.p50Ms.toFixed(2),
    medians.p99Ms.toFixed(2),
    medians.longestMs.toFixed(2),
    medians.cpuUsPerRequest.toFixed(0),
    percent(medians.loadBusy),
    medians.lateMs.toFixed(2),
  ];
  return row(cells, widths);
}
