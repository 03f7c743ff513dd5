import { execFileSync } from "node:child_process";
import { availableParallelism, cpus, totalmem } from "node:os";
import { type DiskMeasurement, type DiskRounds, type DiskWay, diskMediansOf, diskWays } from "./disk.ts";
import { count, mediansOf, percent, row } from "./table.ts";
import type { WrkMeasurement } from "./wrk.ts";

/** The names of the servers. `before` is another checkout of Tiltyard, which is measured only if it is specified. */
export const serverNames = ["tiltyard", "before", "restAdapter", "bareHono"] as const;
export type ServerName = (typeof serverNames)[number];

/** The measurements of a scenario, one per round. */
export interface ScenarioResult {
  readonly name: string;
  readonly connections: number;
  readonly rounds: Readonly<Record<ServerName, readonly WrkMeasurement[]>>;
  /** The measurements of a program that does nothing but write to the disk. */
  readonly disk: DiskRounds | undefined;
}

const figures = ["requestsPerSecond", "p50Ms", "p99Ms", "cpuUsPerRequest", "residentMiB", "loadBusy"] as const;
type Figures = Readonly<Record<(typeof figures)[number], number>>;

const titles = {
  tiltyard: "Tiltyard",
  before: "Tiltyard before",
  restAdapter: "RestAdapter",
  bareHono: "bare Hono",
} as const satisfies Record<ServerName, string>;
const diskTitles = {
  syncfs: "disk, one sync of all",
  each: "disk, a sync for each",
} as const satisfies Record<DiskWay, string>;
const columns = ["", "requests/s", "p50 ms", "p99 ms", "CPU us", "MiB", "load", "requests/s of the rounds"];
const widths = [26, 12, 10, 10, 10, 8, 8, 26];

/** Returns the medians of a scenario over its rounds, and the ratios of ours to the others. */
export function summarizeScenario({ name, connections, rounds, disk }: ScenarioResult) {
  const medians = {
    tiltyard: mediansOf(rounds.tiltyard, figures),
    before: mediansOf(rounds.before, figures),
    restAdapter: mediansOf(rounds.restAdapter, figures),
    bareHono: mediansOf(rounds.bareHono, figures),
  };
  const ofDisk = diskMediansOf(disk);
  return {
    name,
    connections,
    medians,
    ...(ofDisk && {
      ofDisk,
      toDisk: {
        syncfs: medians.tiltyard.requestsPerSecond / ofDisk.syncfs.requestsPerSecond,
        each: medians.tiltyard.requestsPerSecond / ofDisk.each.requestsPerSecond,
      },
    }),
    toBefore: ratiosOf(medians.tiltyard, medians.before),
    toRestAdapter: ratiosOf(medians.tiltyard, medians.restAdapter),
    toBareHono: ratiosOf(medians.tiltyard, medians.bareHono),
    rounds,
    disk,
  };
}

/** Formats a scenario as lines of text. */
export function formatScenario(result: ScenarioResult): string {
  const summary = summarizeScenario(result);
  const { name, connections, medians, toBefore, toRestAdapter, toBareHono, ofDisk, toDisk } = summary;
  const ratios = (title: string, to: Figures) =>
    line([`  ${title}`, ...figures.slice(0, -1).map((figure) => `${to[figure].toFixed(2)}x`)]);
  const measured = (server: ServerName) =>
    line([
      `  ${titles[server]}`,
      Math.round(medians[server].requestsPerSecond).toLocaleString("en"),
      medians[server].p50Ms.toFixed(2),
      medians[server].p99Ms.toFixed(2),
      medians[server].cpuUsPerRequest.toFixed(0),
      medians[server].residentMiB.toFixed(0),
      percent(medians[server].loadBusy),
      spreadOf(result.rounds[server]),
    ]);
  const ofWay = (way: DiskWay, { requestsPerSecond, p50Ms, p99Ms, cpuUsPerRequest }: DiskMeasurement) =>
    line([
      `  ${diskTitles[way]}`,
      Math.round(requestsPerSecond).toLocaleString("en"),
      p50Ms.toFixed(2),
      p99Ms.toFixed(2),
      cpuUsPerRequest.toFixed(0),
      ...["", "", spreadOf(result.disk?.[way] ?? [])],
    ]);
  return [
    `${name}: ${count(connections, "connection")}`,
    line(columns),
    measured("tiltyard"),
    ...(result.rounds.before.length > 0 ? [measured("before"), ratios("Tiltyard / before", toBefore)] : []),
    measured("restAdapter"),
    ratios("Tiltyard / RestAdapter", toRestAdapter),
    measured("bareHono"),
    line(["  Tiltyard of bare Hono", percent(toBareHono.requestsPerSecond)]),
    ...diskWays.flatMap((way) =>
      ofDisk && toDisk ? [ofWay(way, ofDisk[way]), line(["  Tiltyard of that", percent(toDisk[way])])] : [],
    ),
    "",
  ].join("\n");
}

/** Formats the surroundings as a line of text. */
export function formatSurroundings({ cpu, cores, memoryGiB, node, pylance }: Surroundings): string {
  return `${cpu}, ${cores} cores, ${memoryGiB} GiB, Node ${node}, pylance ${pylance}`;
}

type Surroundings = ReturnType<typeof describeSurroundings>;

/** Describes the machine and the versions that the figures depend on. @throws Error if the Python has no pylance. */
export function describeSurroundings(python: string) {
  const findVersion = "from importlib.metadata import version; print(version('pylance'))";
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    pylance: execFileSync(python, ["-c", findVersion], { encoding: "utf8" }).trim(),
  };
}

function ratiosOf(ours: Figures, theirs: Figures): Figures {
  return Object.fromEntries(figures.map((figure) => [figure, ours[figure] / theirs[figure]])) as Figures;
}

function spreadOf(measurements: readonly { readonly requestsPerSecond: number }[]): string {
  const rates = measurements.map((each) => Math.round(each.requestsPerSecond));
  return `${Math.min(...rates).toLocaleString("en")} to ${Math.max(...rates).toLocaleString("en")}`;
}

function line(cells: readonly string[]): string {
  return row(cells, widths);
}
