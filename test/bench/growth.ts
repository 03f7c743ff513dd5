import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { manifestName, versionsFolder } from "../../service/lance/version-names.ts";
import { childLocation, parseLocation } from "../../service/storage/location.ts";
import { insertNamespace } from "../../service/store/namespaces.ts";
import { openStore } from "../../service/store/open.ts";
import { insertTable } from "../../service/store/tables.ts";
import { insertVersion } from "../../service/store/versions.ts";
import { versionRecord } from "../support/version-record.ts";
import { createFolder } from "./folder.ts";
import { type LoadRequest, type Measurement, measure, send } from "./load.ts";
import { readArguments, upTo } from "./options.ts";
import { readUsage } from "./process-usage.ts";
import { type Server, startTiltyard } from "./servers.ts";
import { median } from "./table.ts";

/** The size of a catalog: the number of tables, and of versions of the first one. */
const Size = z.object({
  tables: upTo(100_000_000).default(1_000_000),
  versions: upTo(100_000_000).default(1_000_000),
});
type Size = Readonly<z.infer<typeof Size>>;

const small: Size = { tables: 100, versions: 10 };
const rowsPerTransaction = 10_000;
const namespace = "bench";
const rounds = 5;
const roundSeconds = 1;
const versionsPerRound = 2_000;
const pauseMs = 5;

/** Compares a small catalog with a large one, and deletes all versions of a table while other clients send requests. */
export async function measureGrowth(args: readonly string[]): Promise<void> {
  const large = readArguments(args, Size);
  const folder = createFolder();
  const folders = { small: join(folder, "small"), large: join(folder, "large") };
  await fill(folders.small, small);
  await fill(folders.large, large);

  const startOfSmall = performance.now();
  await using ofSmall = await startTiltyard(folders.small);
  const startOfLarge = performance.now();
  await using ofLarge = await startTiltyard(folders.large);
  const seconds = (from: number, to: number) => `${((to - from) / 1000).toFixed(2)} s`;
  print(`${large.tables.toLocaleString("en")} tables, ${large.versions.toLocaleString("en")} versions of one`);
  print(
    `start: small ${seconds(startOfSmall, startOfLarge)}, large ${seconds(startOfLarge, performance.now())}; ` +
      `${readUsage(ofLarge.pid).residentMiB.toFixed(0)} MiB`,
  );

  print(`${"".padEnd(28)}${"small".padStart(14)}${"large".padStart(14)}${"ratio of CPU".padStart(14)}`);
  const loads = { small: loadsOf(small, folders.small), large: loadsOf(large, folders.large) };
  for (const name of Object.keys(loads.small) as (keyof typeof loads.small)[]) {
    const measured: Record<"small" | "large", Measurement[]> = { small: [], large: [] };
    for (let round = 0; round <= rounds; round += 1)
      for (const [size, server] of [
        ["small", ofSmall],
        ["large", ofLarge],
      ] as const) {
        const measurement = await loads[size][name](server);
        // The first round is only a warm-up.
        if (round > 0) measured[size].push(measurement);
      }
    const us = (size: "small" | "large") => median(measured[size].map(({ cpuUsPerRequest }) => cpuUsPerRequest));
    print(
      name.padEnd(28) +
        `${us("small").toFixed(0)} us`.padStart(14) +
        `${us("large").toFixed(0)} us`.padStart(14) +
        (us("large") / us("small")).toFixed(2).padStart(14),
    );
  }
  print(`memory: ${readUsage(ofLarge.pid).residentMiB.toFixed(0)} MiB`);
  await deleteAll(ofLarge, folders.large);
}

function loadsOf(size: Size, dataDir: string) {
  let next = 0;
  let version = size.versions;
  const on = (table: number, operation: string, body: object = {}): LoadRequest => ({
    method: "POST",
    path: `/v1/table/${namespace}%24${tableName(table)}/${operation}`,
    body: JSON.stringify(body),
  });
  const during = (make: () => LoadRequest) => (server: Server) =>
    measure(server, { connections: 8, seconds: roundSeconds }, make);
  return {
    "describe-table": during(() => {
      // A step without a common divisor with the number of tables reaches all of them.
      next = (next + 7_919) % size.tables;
      return on(next, "describe");
    }),
    "list-tables, a page of 100": during(() => ({
      method: "GET",
      path: `/v1/namespace/${namespace}/table/list?limit=100`,
    })),
    "list-versions, limit=1": during(() => on(0, "version/list?descending=true&limit=1")),
    "create-table-version": (server: Server) => {
      const folder = versionsFolder(locationOf(dataDir, 0), "main");
      const requests: LoadRequest[] = [];
      for (let count = 0; count < versionsPerRound; count += 1) {
        version += 1;
        const manifest_path = `${folder}/${manifestName(version, "V2")}-${crypto.randomUUID()}`;
        writeFileSync(`/${manifest_path}`, "manifest");
        requests.push(on(0, "version/create", { version, manifest_path, naming_scheme: "V2" }));
      }
      requests.reverse();
      // Staged but unused versions are committed first in the next measurement.
      return measure(server, { connections: 1, seconds: roundSeconds }, () => requests.pop()).then((measurement) => {
        version -= requests.length;
        return measurement;
      });
    },
  };
}

/** Deletes all versions of the table while one client describes another table and one creates namespaces. */
async function deleteAll(server: Server, dataDir: string): Promise<void> {
  const file = join(dataDir, "catalog.sqlite");
  const sizeMiB = () => (statSync(file).size + statSync(`${file}-wal`).size) / 2 ** 20;
  const sizeBefore = sizeMiB();
  let isOver = false;
  let created = 0;
  const others = [
    (): LoadRequest => ({ method: "POST", path: `/v1/table/${namespace}%24${tableName(1)}/describe`, body: "{}" }),
    (): LoadRequest => ({ method: "POST", path: `/v1/namespace/n_${created++}/create`, body: "{}" }),
  ];
  const waiting = others.map(async (make) => {
    const latenciesMs: number[] = [];
    while (!isOver) {
      const sentAt = performance.now();
      await send(server, make());
      latenciesMs.push(performance.now() - sentAt);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    return latenciesMs.sort((one, other) => one - other);
  });
  const start = performance.now();
  const path = `/v1/table/${namespace}%24${tableName(0)}/version/delete`;
  const body = JSON.stringify({ ranges: [{ start_version: 0, end_version: -1 }] });
  const { deleted_count } = JSON.parse(await send(server, { method: "POST", path, body }));
  const seconds = (performance.now() - start) / 1000;
  isOver = true;
  print(`deleting ${deleted_count.toLocaleString("en")} versions: ${seconds.toFixed(1)} s; meanwhile`);
  for (const [index, name] of ["describe-table", "create-namespace"].entries()) {
    const latencies = (await waiting[index]) ?? [];
    const at = (share: number) => (latencies[Math.ceil(latencies.length * share) - 1] ?? Number.NaN).toFixed(1);
    print(`  ${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, the longest ${at(1)} ms`);
  }
  print(`  file and log: ${sizeBefore.toFixed(0)} MiB before, ${sizeMiB().toFixed(0)} MiB after`);
}

async function fill(dataDir: string, { tables, versions }: Size): Promise<void> {
  await using store = await openStore({ kind: "sqlite", file: join(dataDir, "catalog.sqlite") });
  await store.write((session) => insertNamespace(session, { identifier: [namespace], properties: {} }));
  for (let from = 0; from < tables; from += rowsPerTransaction)
    await store.write(async (session) => {
      for (let table = from; table < Math.min(tables, from + rowsPerTransaction); table += 1)
        await insertTable(session, {
          identifier: [namespace, tableName(table)],
          location: locationOf(dataDir, table),
          properties: {},
        });
    });
  mkdirSync(`/${versionsFolder(locationOf(dataDir, 0), "main")}`, { recursive: true });
  for (let from = 1; from <= versions; from += rowsPerTransaction)
    await store.write(async (session) => {
      for (let version = from; version < Math.min(versions + 1, from + rowsPerTransaction); version += 1) {
        const name = manifestName(version, "V2");
        const committedName = `${name}-${crypto.randomUUID()}`;
        await insertVersion(session, versionRecord(1, version, { manifestName: name, committedName }));
      }
    });
}

function locationOf(dataDir: string, table: number) {
  return childLocation(parseLocation(join(dataDir, "warehouse")), namespace, `${tableName(table)}.lance`);
}

function tableName(number: number): string {
  return `t_${number.toString().padStart(7, "0")}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
