/**
 * Measures the memory that the service needs for long streams of rows. It sends a stream, reads all rows again, and
 * compares the resident memory before and after.
 *
 *   node test/bench/rows.ts [--mebibytes 2048] [--batch-mebibytes 8]
 *
 * The rows are vectors of random numbers, which no encoding can compress. It requires Linux.
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  Field,
  FixedSizeList,
  Float32,
  makeData,
  RecordBatch,
  RecordBatchStreamWriter,
  Schema,
  Struct,
} from "apache-arrow";
import { z } from "zod";
import { createCatalogClient } from "../../client/index.ts";
import { unusedPort } from "../../client/unused-port.ts";
import { imageEnvironment } from "../support/dockerfile.ts";
import { startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const { values } = parseArgs({
  options: {
    mebibytes: { type: "string", default: "2048" },
    "batch-mebibytes": { type: "string", default: "8" },
  },
});
const size = z.coerce.number().pipe(z.int().min(1));
const batchMebibytes = size.parse(values["batch-mebibytes"]);
const batches = Math.ceil(size.parse(values.mebibytes) / batchMebibytes);
const dimension = 256;
const rowsInBatch = (batchMebibytes * 1024 ** 2) / (4 * dimension);

const folder = temporaryFolder("tiltyard-rows-");
const port = await unusedPort();
const service = startProgram(["service/main.ts", "serve"], {
  ...imageEnvironment(),
  TILTYARD_HOST: "127.0.0.1",
  TILTYARD_PORT: `${port}`,
  TILTYARD_DATA_DIR: folder,
  TILTYARD_LOG_LEVEL: "error",
});
try {
  await service.printed("Call the catalog");
  const url = `http://127.0.0.1:${port}`;
  const apiKey = readFileSync(join(folder, "development.key"), "utf8");
  const headers = { "x-api-key": apiKey };
  await createCatalogClient({ url, apiKey }).describeNamespace({});
  report("started");

  const insert = await fetch(`${url}/v1/table/rows/create`, {
    method: "POST",
    headers,
    body: ReadableStream.from(writeStream()),
    duplex: "half",
  } as RequestInit);
  if (!insert.ok) throw new Error(await insert.text());
  process.stdout.write(`${await insert.text()}\n`);
  report(`${batches * batchMebibytes} MiB inserted`);

  const query = await fetch(`${url}/v1/table/rows/query`, {
    method: "POST",
    headers,
    body: JSON.stringify({ k: batches * rowsInBatch }),
  });
  if (!query.ok || query.body === null) throw new Error(await query.text());
  let bytes = 0;
  for await (const piece of query.body) bytes += piece.length;
  report(`${Math.round(bytes / 1024 ** 2)} MiB queried`);
} finally {
  service.child.kill("SIGTERM");
  await service.finished;
  rmSync(folder, { recursive: true, force: true });
}

function* writeStream(): Generator<Uint8Array> {
  const type = new FixedSizeList(dimension, new Field("item", new Float32(), true));
  const schema = new Schema([new Field("vector", type, true)]);
  const numbers = Float32Array.from({ length: rowsInBatch * dimension }, Math.random);
  const items = makeData({ type: new Float32(), data: numbers });
  const vectors = makeData({ type, length: rowsInBatch, child: items });
  const rows = makeData({ type: new Struct(schema.fields), length: rowsInBatch, children: [vectors] });
  const whole = RecordBatchStreamWriter.writeAll([new RecordBatch(schema, rows)]).toUint8Array(true);
  const empty = new RecordBatchStreamWriter().reset(undefined, schema).finish().toUint8Array(true);
  const endBytes = 8;
  const head = empty.subarray(0, empty.length - endBytes);
  yield head;
  const batch = whole.subarray(head.length, whole.length - endBytes);
  for (let index = 0; index < batches; index++) yield batch;
  yield whole.subarray(whole.length - endBytes);
}

/** Prints the current memory of the service and its peak since the previous call. */
function report(what: string): void {
  const status = readFileSync(`/proc/${service.child.pid}/status`, "utf8");
  const mebibytes = (name: string) => Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024);
  process.stdout.write(`${what}: ${mebibytes("VmRSS")} MiB resident, at most ${mebibytes("VmHWM")} MiB\n`);
}
