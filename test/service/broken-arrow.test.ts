/** Broken Arrow streams are errors of the caller: the response is 400, never 500, and the library survives. */
import { setImmediate } from "node:timers/promises";
import {
  Binary,
  Bool,
  type DataType,
  Dictionary,
  Field,
  FixedSizeList,
  Float32,
  Int32,
  LargeBinary,
  List,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Table,
  TimestampMillisecond,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { expect, test } from "vitest";
import { fileOf, readMessage } from "../../lance-worker/arrow/arrow-file.ts";
import { FlatTable } from "../../lance-worker/arrow/flat-table.ts";
import { ByteReader, readHead } from "../../lance-worker/arrow/message-stream.ts";
import { uniqueName, useCatalog } from "../support/catalog.ts";

/** Errors in the log contain the reason of a 500. */
const catalog = useCatalog({ TILTYARD_LOG_LEVEL: "error" });
/** The number of streams, the seed, and the duration of a search in seconds, which `npm run test:fuzz` sets. */
const {
  TILTYARD_TEST_MUTANTS: mutants = "60",
  TILTYARD_TEST_SEED: seed = "37",
  TILTYARD_TEST_FUZZ_SECONDS: fuzzSeconds = "0",
} = process.env;
const searchMs = Number(fuzzSeconds) * 1_000;

/** Returns a generator of pseudo-random numbers from 0 to 1 for a seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const numbers = Array.from({ length: 40 }, (_, index) => index);
const rows = new Table({
  id: vectorFromArray(numbers, new Int32()),
  title: vectorFromArray(
    numbers.map((number) => (number % 7 === 0 ? null : `title ${number}`)),
    new Utf8(),
  ),
  word: vectorFromArray(
    numbers.map((number) => `word ${number % 3}`),
    new Dictionary(new Utf8(), new Int32()),
  ),
  vector: vectorFromArray(
    numbers.map((number) => [number, 1]),
    new FixedSizeList(2, new Field("item", new Float32(), true)),
  ),
  tags: vectorFromArray(
    numbers.map((number) => [`${number}`, "tag"]),
    new List(new Field("item", new Utf8(), true)),
  ),
  nested: vectorFromArray(
    numbers.map((number) => ({ a: number, b: number % 2 === 0 })),
    new Struct([new Field("a", new Int32(), true), new Field("b", new Bool(), true)]),
  ),
  bytes: vectorFromArray(
    numbers.map((number) => new Uint8Array([number])),
    new Binary(),
  ),
  time: vectorFromArray(numbers, new TimestampMillisecond()),
});
const whole = RecordBatchStreamWriter.writeAll([...rows.slice(0, 20).batches, ...rows.slice(20).batches]).toUint8Array(
  true,
);

/** Returns a copy of the stream with one of several kinds of damage. */
function mutate(random: () => number): Uint8Array {
  const bytes = Buffer.from(whole);
  const at = () => Math.floor(random() * bytes.length);
  const hostile = [0, 1, 0x7f, 0x80, 0xff];
  switch (Math.floor(random() * 6)) {
    case 0:
      return bytes.subarray(0, at());
    case 1: {
      const [from, to] = [at(), at()].toSorted((a, b) => a - b);
      return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
    }
    case 2:
      bytes.writeInt32LE(Math.floor((random() - 0.5) * 2 ** 32), Math.min(at() & ~3, bytes.length - 4));
      return bytes;
    case 3:
      bytes.fill(hostile[Math.floor(random() * hostile.length)] ?? 0, at(), at());
      return bytes;
    case 4: {
      const from = at();
      bytes.copyWithin(at(), from, from + 64);
      return bytes;
    }
    default:
      for (let flips = 1 + Math.floor(random() * 4); flips > 0; flips -= 1) {
        const place = at();
        bytes[place] = (bytes[place] ?? 0) ^ (1 << Math.floor(random() * 8));
      }
      return bytes;
  }
}

test("mutated streams are never 500 in every operation with rows", { timeout: searchMs + 300_000 }, async () => {
  const random = randomFrom(Number(seed));
  const endAt = performance.now() + searchMs;
  const namespace = uniqueName("ns");
  await catalog.call("createNamespace", { id: [namespace] });
  const id = [namespace, "rows"];
  await catalog.call("createTable", { id }, { body: whole });
  // An overwrite may rename the key of the other table.
  const merged = [namespace, "merged"];
  await catalog.call("createTable", { id: merged }, { body: whole });
  const merge = { id: merged, on: ["id"], when_matched_update_all: true, when_not_matched_insert_all: true };
  const statuses = new Map<string, number>();
  for (let mutant = 0; mutant < Number(mutants) || performance.now() < endAt; mutant += 1) {
    const body = mutate(random);
    const answers = await Promise.all([
      catalog.call("insertIntoTable", { id, mode: "overwrite" }, { body }),
      catalog.call("createTable", { id: [namespace, `t${mutant}`] }, { body }),
      catalog.call("mergeInsertIntoTable", merge, { body }),
    ]);
    for (const answer of answers) {
      const { status } = answer;
      if (![200, 400, 409, 413].includes(status)) statuses.set(`${status} ${mutant} ${answer.error.detail}`, status);
      else if (status === 400) expect(answer.error.detail).not.toBe("");
    }
  }
  expect([...statuses.keys()]).toEqual([]);
  // The same child still works.
  expect((await catalog.call("insertIntoTable", { id, mode: "overwrite" }, { body: whole })).status).toBe(200);
});

/** Compressed streams by pyarrow: 100 rows of the number 7 and a text of 50 letters. JavaScript's library writes none. */
const compressed = {
  zstd:
    "/////6gAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAIAAABAAAAABAAAANj///8AAAEFEAAAABgAAAAEAA" +
    "AAAAAAAAEAAAB0AAAABAAEAAQAAAAQABQACAAGAAcADAAAABAAEAAAAAAAAQIQAAAAHAAAAAQAAAAAAAAAAQAAAG4AAAAIAAwACAAHAAgAAAAA" +
    "AAABIAAAAAAAAAD/////4AAAABQAAAAAAAAADAAYAAYABQAIAAwADAAAAAADBAAcAAAAaAEAAAAAAAAAAAAADAAeABAABAAIAAwADAAAAIAAAA" +
    "AkAAAAGAAAAGQAAAAAAAAAAAAAAAAABgAIAAcABgAAAAAAAAEFAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAHQAAAAAAAAAgAAAAAAAAAAAA" +
    "AAAAAAAAIAAAAAAAAAAmAQAAAAAAAEgBAAAAAAAAGwAAAAAAAAAAAAAAAgAAAGQAAAAAAAAAAAAAAAAAAABkAAAAAAAAAAAAAAAAAAAAkAEAAA" +
    "AAAAAotS/9YJAAXQAAIAcAAAABAImrjggAAACUAQAAAAAAACi1L/1glAClCABGGUQ5IHVaM00JkbHgRSx4rQSYWdBGFrSnAqyz0MIstOYErPHg" +
    "Qjy40VrrrXVrqbZq0SSyu7u7u7u7u3cKMQA1ADUAQ45gHHE4QnCkMlRkSMaQhyEFQyw/R35o/IT4afDzsqNk58YOiR0IOzJvch0/8Qmv+RaOrR" +
    "JbEbZmrpxc7bhCcUXhCsDVM9VjSsWUhSkBU9XTjycWTxieCDxtS0GWXCxpWDKwhHIUtxZvGd4KvHVrQtZerG1YO7CWckbkLMZZh7MEZytjRsZm" +
    "jH0YWzDW8oXkq8aXiC8HXzBbSw5vQLxh8MblL8mfjb8Rfw/+YvaY7OXYM7EnYY/m7skdj7sUdxXuAtxFcz7mVsxdmBswd70BGQAAAIgTAAAAAA" +
    "AAKLUv/WCIEk0AABB4eAEAg9MDLAAAAAAA/////wAAAAA=",
  lz4:
    "/////6gAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAIAAABAAAAABAAAANj///8AAAEFEAAAABgAAAAEAA" +
    "AAAAAAAAEAAAB0AAAABAAEAAQAAAAQABQACAAGAAcADAAAABAAEAAAAAAAAQIQAAAAHAAAAAQAAAAAAAAAAQAAAG4AAAAIAAwACAAHAAgAAAAA" +
    "AAABIAAAAAAAAAD/////2AAAABQAAAAAAAAADAAYAAYABQAIAAwADAAAAAADBAAcAAAAEAIAAAAAAAAAAAAADAAcABAABAAIAAwADAAAAHgAAA" +
    "AcAAAAFAAAAGQAAAAAAAAAAAAAAAQABAAEAAAABQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACYAAAAAAAAAKAAAAAAAAAAAAAAAAAAAACgA" +
    "AAAAAAAAqwEAAAAAAADYAQAAAAAAADUAAAAAAAAAAAAAAAIAAABkAAAAAAAAAAAAAAAAAAAAZAAAAAAAAAAAAAAAAAAAAJABAAAAAAAABCJNGG" +
    "BAgg8AAABPBwAAAAQA/3VQAAcAAAAAAAAAAACUAQAAAAAAAAQiTRhgQIKUAQCAAAAAADIAAABkAAAAlgAAAMgAAAD6AAAALAEAAF4BAACQAQAA" +
    "wgEAAPQBAAAmAgAAWAIAAIoCAAC8AgAA7gIAACADAABSAwAAhAMAALYDAADoAwAAGgQAAEwEAAB+BAAAsAQAAOIEAAAUBQAARgUAAHgFAACqBQ" +
    "AA3AUAAA4GAABABgAAcgYAAKQGAADWBgAACAcAADoHAABsBwAAngcAANAHAAACCAAANAgAAGYIAACYCAAAyggAAPwIAAAuCQAAYAkAAJIJAADE" +
    "CQAA9gkAACgKAABaCgAAjAoAAL4KAADwCgAAIgsAAFQLAACGCwAAuAsAAOoLAAAcDAAATgwAAIAMAACyDAAA5AwAABYNAABIDQAAeg0AAKwNAA" +
    "DeDQAAEA4AAEIOAAB0DgAApg4AANgOAAAKDwAAPA8AAG4PAACgDwAA0g8AAAQQAAA2EAAAaBAAAJoQAADMEAAA/hAAADARAABiEQAAlBEAAMYR" +
    "AAD4EQAAKhIAAFwSAACOEgAAwBIAAPISAAAkEwAAVhMAAIgTAAAAAAAAAAAAAACIEwAAAAAAAAQiTRhgQIIeAAAAH3gBAP////////////////" +
    "////////+CUHh4eHh4AAAAAAAAAP////8AAAAA",
};
/** The lengths of the buffers of these streams before their compression. */
const bufferLengths = [400, 404, 5_000];

test.each(Object.entries(compressed))("a stream with %s and a false length of a buffer is 400", async (_, base64) => {
  const stream = Buffer.from(base64, "base64");
  const id = [uniqueName("compressed")];
  expect((await catalog.call("createTable", { id }, { body: stream })).status).toBe(200);
  for (const length of bufferLengths)
    for (const false_ of [2n ** 62n, 2n ** 40n, 2n ** 33n, 600n, 8n, 0n, -5n]) {
      const body = Buffer.from(stream);
      const search = Buffer.alloc(8);
      search.writeBigInt64LE(BigInt(length));
      body.writeBigInt64LE(false_, stream.indexOf(search));
      const { status } = await catalog.call("insertIntoTable", { id }, { body });
      expect([length, false_, status]).toEqual([length, false_, 400]);
    }
  expect((await catalog.call("insertIntoTable", { id }, { body: stream })).status).toBe(200);
});

/** A stream of pyarrow with `emit_dictionary_deltas`: its second batch adds a text to the dictionary of its first one. */
const withDelta =
  "/////5AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAEAAAAvP///wQAAAABAAAAFAAAABAAGAAIAAYABwAMABAAFAAQAAAAAAABBRQAAABAAAAA" +
  "HAAAAAQAAAAAAAAAAQAAAGQAAAAIAAgAAAAEAAgAAAAMAAAACAAMAAgABwAIAAAAAAAAAQgAAAAEAAQABAAAAAAAAAD/////qAAAABQAAAAAAAAA" +
  "DAAUAAYABQAIAAwADAAAAAACBAAUAAAAGAAAAAAAAAAIAAoAAAAEAAgAAAAQAAAAAAAKABgADAAEAAgACgAAAEwAAAAQAAAAAgAAAAAAAAAAAAAA" +
  "AwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAwAAAAAAAAAEAAAAAAAAAACAAAAAAAAAAAAAAABAAAAAgAAAAAAAAAAAAAAAAAAAAAAAAABAAAA" +
  "AgAAAAAAAABhYgAAAAAAAP////+IAAAAFAAAAAAAAAAMABYABgAFAAgADAAMAAAAAAMEABgAAAAIAAAAAAAAAAAACgAYAAwABAAIAAoAAAA8AAAA" +
  "EAAAAAIAAAAAAAAAAAAAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACAAAAAAAAAAAAAAABAAAAAgAAAAAAAAAAAAAAAAAAAAABAAAAAAAA" +
  "/////7AAAAAUAAAAAAAAAAwAFgAGAAUACAAMAAwAAAAAAgQAGAAAABAAAAAAAAAAAAAKAA4AAAAIAAcACgAAAAAAAAEQAAAAAAAKABgADAAEAAgA" +
  "CgAAAEwAAAAQAAAAAQAAAAAAAAAAAAAAAwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgAAAAAAAAACAAAAAAAAAABAAAAAAAAAAAAAAABAAAA" +
  "AQAAAAAAAAAAAAAAAAAAAAAAAAABAAAAYwAAAAAAAAD/////iAAAABQAAAAAAAAADAAWAAYABQAIAAwADAAAAAADBAAYAAAACAAAAAAAAAAAAAoA" +
  "GAAMAAQACAAKAAAAPAAAABAAAAACAAAAAAAAAAAAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgAAAAAAAAAAAAAAAQAAAAIAAAAAAAAA" +
  "AAAAAAAAAAAAAgAAAAAAAP////8AAAAA";

test("a stream with a delta dictionary or the framing before Arrow 0.15 is 400 with the reason", async () => {
  const streams = {
    "delta dictionary": Buffer.from(withDelta, "base64"),
    "framing of Arrow before 0.15": tableToIPC(rows, "stream").subarray(4),
  };
  for (const [reason, body] of Object.entries(streams))
    expect((await catalog.call("createTable", { id: [uniqueName("old")] }, { body })).error).toMatchObject({
      status: 400,
      detail: expect.stringContaining(reason),
    });
});

/** Returns a schema of structs in each other, each of which refers to the next one twice: 2^depth fields in 2 KiB. */
function schemaOfSharedFields(depth: number): Buffer {
  let type: DataType = new Int32();
  for (let level = 0; level < depth; level += 1)
    type = new Struct([new Field("a", type, true), new Field("b", new Int32(), true)]);
  const stream = Buffer.from(tableToIPC(new Table(new Schema([new Field("s", type, true)])), "stream"));
  const metadata = stream.subarray(8);
  let [parent] = FlatTable.root(metadata).table(2)?.tables(1) ?? [];
  for (let level = 0; level < depth; level += 1) {
    const [[inner], [, second = 0]] = [parent?.tables(5) ?? [], parent?.slots(5) ?? []];
    metadata.writeUInt32LE((inner?.position ?? 0) - second, second);
    parent = inner;
  }
  return stream;
}

test("a schema whose fields refer to the same bytes is 400 at once", async () => {
  const body = schemaOfSharedFields(18);
  const id = [uniqueName("shared")];
  expect((await catalog.call("createTable", { id }, { body })).error).toMatchObject({
    status: 400,
    detail: expect.stringContaining("its metadata is broken"),
  });
  const view = { id, kind: "query", source_query: "{}", output_schema: body.toString("base64") } as const;
  expect((await catalog.call("createMaterializedView", view)).error).toMatchObject({
    status: 400,
    detail: expect.stringContaining("its metadata is broken"),
  });
});

test("a schema is the beginning of any number of files", () => {
  const schema = readMessage(Buffer.from(whole));
  const files = Array.from({ length: 10_000 }, () => fileOf(schema));
  expect(files.at(-1)).toEqual(files[0]);
});

test("a table with structs in 50 levels is created", async () => {
  let type: DataType = new Int32();
  for (let level = 0; level < 50; level += 1)
    type = new Struct([new Field("a", type, true), new Field("b", new Int32(), true)]);
  const body = tableToIPC(new Table(new Schema([new Field("s", type, true)])), "stream");
  expect((await catalog.call("createTable", { id: [uniqueName("deep")] }, { body })).status).toBe(200);
});

test("a stream that announces long metadata uses memory only as they arrive", async () => {
  const prefix = Buffer.alloc(8, 0xff);
  prefix.writeInt32LE(4 * 1024 ** 2, 4);
  const residentBefore = process.memoryUsage.rss();
  const end = Promise.withResolvers<void>();
  const heads = Array.from({ length: 100 }, () =>
    readHead(
      new ByteReader(
        (async function* () {
          yield prefix;
          await end.promise;
        })(),
      ),
    ),
  );
  await setImmediate();
  expect(process.memoryUsage.rss() - residentBefore).toBeLessThan(100 * 1024 ** 2);
  end.resolve();
  for (const head of heads) await expect(head).rejects.toThrow("it ends within a message");
});

test("a body that is no Arrow stream is 400", async () => {
  const id = [uniqueName("none")];
  for (const body of [new Uint8Array(), Buffer.from("{}"), tableToIPC(rows, "file"), Buffer.alloc(1000, 0xff)])
    expect((await catalog.call("createTable", { id }, { body })).error).toMatchObject({ status: 400, code: 13 });
});

test.each(["no uri at all", "", "file:///etc/passwd", "http://[::1", "s3://", "\u0000", "../../x"])(
  "a blob at %j is 400 or is refused when it is read, never 500",
  async (uri) => {
    const id = [uniqueName("blobs")];
    const type = new Struct([new Field("data", new LargeBinary(), true), new Field("uri", new Utf8(), true)]);
    const metadata = new Map([["ARROW:extension:name", "lance.blob.v2"]]);
    const blobs = vectorFromArray([{ data: null, uri }], type);
    const table = new Table({ blob: blobs });
    table.schema.fields[0] = new Field("blob", type, true, metadata);
    const { status } = await catalog.call("createTable", { id }, { body: tableToIPC(table, "stream") });
    expect([200, 400]).toContain(status);
    if (status === 200) expect([200, 400]).toContain((await catalog.call("queryTable", { id, k: 1 })).status);
  },
);
