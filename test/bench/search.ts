import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";
import { connect, Index, type Table } from "@lancedb/lancedb";
import { z } from "zod";
import { preparePython } from "../interop/tools.ts";
import { createFolder } from "./folder.ts";
import { type LoadRequest, type Measurement, measure, send, summarize } from "./load.ts";
import { numbers, readArguments, upTo } from "./options.ts";
import { readUsage } from "./process-usage.ts";
import { type Server, startReference, startTiltyard } from "./servers.ts";

const dimension = 128;
const rowsInBatch = 20_000;
const partitions = 512;
const subVectors = 16;
const found = 10;
const probes = 20;
/** The number of different search vectors. */
const searches = 1_000;
const warmUpSeconds = 4;
const name = "points";

const Options = z.object({
  rows: upTo(100_000_000).default(1_000_000),
  rounds: numbers.rounds.default(3),
  seconds: z.coerce.number().min(0.1).default(5),
  connections: numbers.connections.default([1, 16]),
  /** The folder of an earlier run, to measure it again. */
  table: z.string().optional(),
  before: z.string().optional(),
});

/**
 * Measures vector searches in a table with an IVF_PQ index: through the catalog in both of its dialects, through
 * pylance's RestAdapter, and by lancedb, which opens the folder directly. All use the same files.
 */
export async function measureSearch(args: string[]): Promise<void> {
  const options = readArguments(args, Options);
  const folder = createFolder();
  const lance = options.table ?? join(folder, "lance");
  if (!existsSync(join(lance, `${name}.lance`))) await makeTable(lance, options.rows);
  const table = await (await connect(lance)).openTable(name);
  process.stdout.write(
    `${await table.countRows()} rows, ${dimension} dimensions, ${found} found in ${probes} partitions\n`,
  );

  await using tiltyard = await startWith(lance, join(folder, "tiltyard"));
  await using before = options.before ? await startWith(lance, join(folder, "before"), options.before) : undefined;
  const root = join(folder, "reference");
  cpSync(join(lance, `${name}.lance`), join(root, `${name}.lance`), { recursive: true });
  await using reference = await startReference(root, process.env.TILTYARD_BENCH_PYTHON ?? preparePython());
  const vectors = Array.from({ length: searches }, () => randomVector());
  const inProtocol = requestsOf(vectors, "query", (vector) => ({
    vector: { single_vector: vector },
    columns: { column_names: ["id"] },
  }));
  const inDialect = requestsOf(vectors, "query/", (vector) => ({ vector, columns: ["id"] }));
  type Measured = (load: { connections: number; seconds: number }) => Promise<Measurement>;
  const ways: Record<string, Measured> = {
    "lancedb on the folder": (load) => measureLocal(table, vectors, load),
    "the catalog": (load) => measure(tiltyard, load, inProtocol),
    "the catalog, LanceDB's dialect": (load) => measure(tiltyard, load, inDialect),
    ...(before && { "the catalog before": (load: Parameters<Measured>[0]) => measure(before, load, inProtocol) }),
    "pylance's RestAdapter": (load) => measure(reference, load, inProtocol),
  };
  for (const connections of options.connections) {
    const measured = new Map<string, Measurement[]>(Object.keys(ways).map((way) => [way, []]));
    for (const run of Object.values(ways)) await run({ connections, seconds: warmUpSeconds });
    for (let round = 0; round < options.rounds; round += 1)
      for (const [way, run] of Object.entries(ways))
        measured.get(way)?.push(await run({ connections, seconds: options.seconds }));
    process.stdout.write(`\n${connections} at a time, medians of ${options.rounds} rounds of ${options.seconds} s\n`);
    for (const [way, all] of measured) {
      const median = (field: keyof Measurement) =>
        all.map((each) => each[field]).toSorted((a, b) => a - b)[all.length >> 1] ?? 0;
      const figures = [
        `${Math.round(median("requestsPerSecond"))}/s`,
        `p50 ${median("p50Ms").toFixed(2)} ms`,
        `p99 ${median("p99Ms").toFixed(2)} ms`,
        `${Math.round(median("cpuUsPerRequest"))} us CPU`,
        `${Math.round(median("residentMiB"))} MiB`,
      ];
      process.stdout.write(`${way.padEnd(32)}${figures.map((each) => each.padStart(16)).join("")}\n`);
    }
  }
}

/** The centers of clusters, which real data mostly has. */
const centers = Array.from({ length: 500 }, () => Array.from({ length: dimension }, () => 4 * normal()));
function randomVector(): number[] {
  const center = centers[Math.floor(Math.random() * centers.length)] ?? [];
  return center.map((each) => each + normal());
}

/** Returns an approximately normally distributed number. */
function normal(): number {
  return Math.random() + Math.random() + Math.random() + Math.random() - 2;
}

async function makeTable(folder: string, rows: number): Promise<void> {
  const database = await connect(folder);
  let table: Table | undefined;
  for (let at = 0; at < rows; at += rowsInBatch) {
    const length = Math.min(rowsInBatch, rows - at);
    const batch = Array.from({ length }, (_, index) => ({ id: at + index, vector: randomVector() }));
    if (table === undefined) table = await database.createTable(name, batch);
    else await table.add(batch);
  }
  await table?.createIndex("vector", { config: Index.ivfPq({ numPartitions: partitions, numSubVectors: subVectors }) });
}

/** Starts a catalog with the table. */
async function startWith(lance: string, folder: string, checkout?: string): Promise<Server> {
  const server = await startTiltyard(folder, [], { checkout });
  const copy = join(folder, "warehouse", `${name}.lance`);
  cpSync(join(lance, `${name}.lance`), copy, { recursive: true });
  const body = JSON.stringify({ location: `${name}.lance` });
  await send(server, { method: "POST", path: `/v1/table/${name}/register`, body });
  return server;
}

function requestsOf(
  vectors: readonly number[][],
  operation: string,
  bodyOf: (vector: number[]) => object,
): () => LoadRequest {
  const requests = vectors.map((vector): LoadRequest => {
    const body = JSON.stringify({ k: found, nprobes: probes, ...bodyOf(vector) });
    return { method: "POST", path: `/v1/table/${name}/${operation}`, body };
  });
  return () => requests[Math.floor(Math.random() * requests.length)] ?? unreachable();
}

function unreachable(): never {
  throw new Error("at least one request is required");
}

async function measureLocal(
  table: Table,
  vectors: readonly number[][],
  { connections, seconds }: { readonly connections: number; readonly seconds: number },
): Promise<Measurement> {
  const search = () =>
    table
      .query()
      .nearestTo(vectors[Math.floor(Math.random() * vectors.length)] ?? [])
      .nprobes(probes)
      .limit(found)
      .select(["id"])
      .toArrow();
  const latenciesMs: number[] = [];
  const usageBefore = readUsage(process.pid);
  const start = performance.now();
  const stopAt = start + seconds * 1000;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (let sentAt = performance.now(); sentAt < stopAt; ) {
        await search();
        const answeredAt = performance.now();
        latenciesMs.push(answeredAt - sentAt);
        sentAt = answeredAt;
      }
    }),
  );
  const measuredSeconds = (performance.now() - start) / 1000;
  const usage = readUsage(process.pid);
  return {
    ...summarize(latenciesMs, measuredSeconds),
    cpuUsPerRequest: ((usage.cpuMs - usageBefore.cpuMs) * 1000) / latenciesMs.length,
    residentMiB: usage.residentMiB,
  };
}
