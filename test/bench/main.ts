import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DiskMeasurement, type DiskWay, diskWays, measureDisk } from "./disk.ts";
import { createFolder } from "./folder.ts";
import { measureGrowth } from "./growth.ts";
import { measureLoad } from "./hostile-load.ts";
import { measureJobs } from "./jobs.ts";
import type { Target } from "./load.ts";
import { type BenchOptions, readOptions, usage } from "./options.ts";
import {
  describeSurroundings,
  formatScenario,
  formatSurroundings,
  type ScenarioResult,
  type ServerName,
  serverNames,
  summarizeScenario,
} from "./report.ts";
import { constantRequest, type LoadSize, type PreparedLoad, type Scenario } from "./scenarios.ts";
import { measureSearch } from "./search.ts";
import { startBareHono, startReference, startTiltyard } from "./servers.ts";
import { measureStart } from "./start.ts";
import { measureByWrk, type WrkMeasurement } from "./wrk.ts";

/**
 * The duration of the load before a new server is measured, limited to that of the measurements. V8 continues to
 * compile hot code for some seconds, longer for more code; the adapter is already compiled.
 */
const warmUpSeconds = { tiltyard: 12, before: 12, restAdapter: 1, bareHono: 2 } as const satisfies Record<
  ServerName,
  number
>;

/**
 * The minimum number of requests per connection, below which a measurement is repeated for longer. Requests without a
 * response at the end are not counted, although the server has worked on them.
 */
const requestsPerConnectionMin = 5;
/** The maximum extension of a measurement, because a server without any response has no known rate. */
const timesLongerMax = 8;

try {
  const [mode, ...args] = process.argv.slice(2);
  if (process.argv.includes("--help")) process.stdout.write(`${usage}\n`);
  else if (mode === "growth") await measureGrowth(args);
  else if (mode === "load") await measureLoad(args);
  else if (mode === "jobs") await measureJobs(args);
  else if (mode === "search") await measureSearch(args);
  else if (mode === "start") await measureStart(args, process.env);
  else await bench(readOptions(process.argv.slice(2), process.env));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : error}\n`);
  // The load of the failed measurement may still be running.
  process.exit(1);
}

async function bench(options: BenchOptions): Promise<void> {
  const folder = createFolder();
  const surroundings = describeSurroundings(options.python);
  const { rounds, seconds, connections, tables } = options;
  process.stdout.write(
    `${formatSurroundings(surroundings)}\n` +
      `${tables} tables, ${connections.join(", ")} connections, medians of ${rounds} rounds of ${seconds} s\n\n`,
  );
  const results: ScenarioResult[] = [];
  for (const scenario of options.scenarios)
    for await (const result of runScenario(scenario, options, join(folder, scenario.name))) {
      process.stdout.write(`${formatScenario(result)}\n`);
      results.push(result);
    }
  if (options.json === undefined) return;
  const report = {
    date: new Date().toISOString(),
    surroundings,
    rounds,
    seconds,
    connections,
    tables,
    scenarios: results.map(summarizeScenario),
  };
  writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
}

/** Measures all servers in turn. They are new, so that no scenario is affected by the data of another one. */
async function* runScenario(scenario: Scenario, options: BenchOptions, folder: string): AsyncGenerator<ScenarioResult> {
  const size: LoadSize = { connections: Math.max(...options.connections), tables: options.tables };
  await using tiltyard = await startTiltyard(join(folder, "tiltyard"));
  await using before =
    options.before === undefined
      ? undefined
      : await startTiltyard(join(folder, "before"), [], { checkout: options.before });
  await using restAdapter = await startReference(join(folder, "rest-adapter"), options.python);
  await using bareHono = await startBareHono();
  const servers: Partial<Record<ServerName, readonly [Target, PreparedLoad]>> = {
    tiltyard: [tiltyard, await scenario.prepare(tiltyard, size)],
    ...(before && { before: [before, await scenario.prepare(before, size)] }),
    restAdapter: [restAdapter, await scenario.prepare(restAdapter, size)],
    bareHono: [bareHono, { take: async () => ({ list: [constantRequest], mayRepeat: true }) }],
  };
  const measureFor = async (name: ServerName, seconds: number, connections: number): Promise<WrkMeasurement[]> => {
    const server = servers[name];
    if (server === undefined) return [];
    const [target, load] = server;
    // Pending writes of others must not delay this measurement; disk.py syncs first too.
    if (scenario.isOfDisk) execFileSync("sync");
    const measured = await measureByWrk(target, { connections, seconds }, await load.take({ seconds, connections }));
    load.sent?.(measured.sent);
    const timesLonger = (requestsPerConnectionMin * connections) / measured.requests;
    if (timesLonger <= 1) return [measured];
    return measureFor(name, Math.ceil(seconds * Math.min(timesLonger + 1, timesLongerMax)), connections);
  };

  for (const name of serverNames)
    await measureFor(name, Math.min(warmUpSeconds[name], options.rounds * options.seconds), size.connections);
  for (const connections of options.connections) {
    const rounds: Record<ServerName, WrkMeasurement[]> = { tiltyard: [], before: [], restAdapter: [], bareHono: [] };
    const disk: Record<DiskWay, DiskMeasurement[]> | undefined = scenario.isOfDisk
      ? { syncfs: [], each: [] }
      : undefined;
    for (let round = 0; round < options.rounds; round += 1) {
      // The order alternates, so that the pending disk writes of one server do not always affect the same successor.
      for (const name of round % 2 === 0 ? serverNames : serverNames.toReversed())
        rounds[name].push(...(await measureFor(name, options.seconds, connections)));
      const load = { connections, seconds: options.seconds };
      if (disk !== undefined)
        for (const way of diskWays) disk[way].push(await measureDisk(options.python, join(folder, "disk"), way, load));
    }
    yield { name: scenario.name, connections, rounds, disk };
  }
}
