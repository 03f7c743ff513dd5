import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { connectNamespace } from "@lancedb/lancedb";
import { CatalogError } from "@tiltyard/protocol";
import {
  Dictionary,
  Field,
  FixedSizeList,
  Float32,
  Int32,
  LargeBinary,
  List,
  makeData,
  RecordBatchStreamWriter,
  Struct,
  Table,
  Timestamp,
  TimeUnit,
  tableFromIPC,
  tableFromJSON,
  tableToIPC,
  Uint8,
  Utf8,
  Vector,
  vectorFromArray,
} from "apache-arrow";
import { beforeAll, describe, expect, test } from "vitest";
import { declareTable, finalName, pathOf, startTestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";
import { startProgram } from "../support/process.ts";
import { arrowStream, createFilms, films, filmTable, readRows } from "../support/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const catalog = useCatalog();

/** Generates the body of a slow client. */
async function* slowly(piece: Buffer, times: number): AsyncGenerator<Buffer> {
  for (let time = 0; time < times; time++) {
    yield piece;
    await sleep(50);
  }
}

async function ids(id: readonly string[], request: object = {}): Promise<unknown[]> {
  const { body } = await catalog.call("queryTable", { id, k: 1000, ...request });
  return (await readRows(body)).map((row) => row.id);
}

const versionsOf = async (id: readonly string[]) =>
  (await catalog.call("listTableVersions", { id })).body.versions.map(({ version }) => version);

/** Returns the operation and the principal of a transaction. */
async function transaction(name: string | undefined) {
  const { context } = (await catalog.call("describeTransaction", { id: name?.split("$") ?? [] })).body;
  return { operation: context?.operation, principal: context?.principal, request: context?.request_id };
}

describe("describe with load_detailed_metadata", () => {
  test("returns version, schema and statistics of the latest version, of a version and of a tag", async () => {
    const id = await createFilms(catalog);
    await catalog.call("deleteFromTable", { id, predicate: "id = 2" });
    await catalog.call("createTableTag", { id, tag: "first", version: 1 });
    const described = async (more: object) =>
      (await catalog.call("describeTable", { id, load_detailed_metadata: true, ...more })).body;
    const latest = await described({});
    expect(latest).toMatchObject({
      version: 2,
      stats: { num_deleted_rows: 1, num_fragments: 1 },
      is_only_declared: false,
      managed_versioning: true,
    });
    expect(latest.schema?.fields).toEqual([
      { name: "id", type: { type: "float64" }, nullable: true },
      { name: "title", type: { type: "utf8" }, nullable: true },
    ]);
    expect(latest.table_uri).toBe(latest.location);
    for (const at of [{ version: 1 }, { tag: "first" }])
      expect(await described(at)).toMatchObject({ version: 1, stats: { num_deleted_rows: 0, num_fragments: 1 } });
  });

  test("reports a table that is only declared", async () => {
    const id = [...(await createFilms(catalog)).slice(0, 1), "declared"];
    await catalog.call("declareTable", { id });
    const { body } = await catalog.call("describeTable", { id, load_detailed_metadata: true });
    expect(body).toMatchObject({ is_only_declared: true });
    expect(body.schema).toBeUndefined();
  });

  test("is 404 for an unknown version, tag and branch", async () => {
    const id = await createFilms(catalog);
    for (const [at, code] of [
      [{ version: 9 }, 11],
      [{ tag: "t" }, 8],
      [{ branch: "b" }, 22],
    ] as const)
      expect((await catalog.call("describeTable", { id, load_detailed_metadata: true, ...at })).error).toMatchObject({
        status: 404,
        code,
      });
  });
});

describe("a vector search", () => {
  test("ignores nprobes if the request has a minimum or maximum of partitions", async () => {
    const id = [uniqueName("points")];
    const rows = Array.from({ length: 300 }, (_, row) => ({ id: row, vector: [row, 0] }));
    const type = new FixedSizeList(2, new Field("item", new Float32(), true));
    const points = new Table({
      id: vectorFromArray(rows.map((row) => row.id)),
      vector: vectorFromArray(
        rows.map(({ vector }) => vector),
        type,
      ),
    });
    await catalog.call("createTable", { id }, { body: tableToIPC(points, "stream") });
    await catalog.call("createTableIndex", { id, column: "vector", index_type: "IVF_FLAT", num_partitions: 8 });
    const plan = async (probes: object) => {
      const query = { k: 1, vector: { single_vector: [0, 0] }, ...probes };
      return (await catalog.call("explainTableQueryPlan", { id, query } as never)).body as string;
    };
    const probes = async (given: object) =>
      /minimum_nprobes=\d+, maximum_nprobes=\w+(\(\d+\))?/.exec(await plan(given))?.[0];
    expect([
      await probes({ nprobes: 5 }),
      await probes({ nprobes: 5, minimum_nprobes: 3 }),
      await probes({ nprobes: 5, maximum_nprobes: 4 }),
      await probes({ minimum_nprobes: 2, maximum_nprobes: 30 }),
    ]).toEqual([
      "minimum_nprobes=5, maximum_nprobes=Some(5)",
      "minimum_nprobes=3, maximum_nprobes=None",
      "minimum_nprobes=4, maximum_nprobes=Some(4)",
      "minimum_nprobes=2, maximum_nprobes=Some(30)",
    ]);
    const refused = { k: 1, vector: { single_vector: [0, 0] }, minimum_nprobes: 3, maximum_nprobes: 2 };
    expect((await catalog.call("queryTable", { id, ...refused })).error).toMatchObject({ status: 400 });
  });
});

describe("a timestamp whose zone has a colon", () => {
  test("keeps its spelling and its values", async () => {
    const id = [uniqueName("zones")];
    const zone = (name: string) => new Timestamp(TimeUnit.MICROSECOND, name);
    const column = (name: string) => vectorFromArray([0, 1], zone(name));
    const nested = vectorFromArray([{ at: 0 }, { at: 1 }], new Struct([new Field("at", zone("+00:00"), true)]));
    const times = new Table({ id: vectorFromArray([1, 2]), at: column("+05:30"), nested, utc: column("UTC") });
    const body = tableToIPC(times, "stream");
    expect((await catalog.call("createTable", { id }, { body })).body).toMatchObject({ version: 1 });
    expect((await catalog.call("insertIntoTable", { id }, { body })).body).toMatchObject({ version: 2 });
    const merge = { id, on: ["id"], when_matched_update_all: true };
    expect((await catalog.call("mergeInsertIntoTable", merge, { body })).body).toMatchObject({ version: 3 });
    const data_type = { type: "timestamp[us, tz=-03:30]" };
    const column_of = { name: "later", data_type };
    expect((await catalog.call("alterTableAddColumns", { id, new_columns: [column_of] } as never)).status).toBeLessThan(
      500,
    );
    const { schema } = (await catalog.call("remoteDescribeTable", { id })).body;
    const types = schema.fields.map(({ type }) => type.fields?.[0]?.type.type ?? type.type);
    expect(types.slice(1, 4)).toEqual(["timestamp:us:+05:30", "timestamp:us:+00:00", "timestamp:us:UTC"]);
    expect(await ids(id, { filter: "at < timestamp '2000-01-01 00:00:00+05:30'" })).toHaveLength(4);
  });
});

describe("the rows of a table", () => {
  test("are merged on several fields, in a query parameter that repeats", async () => {
    const id = await createFilms(catalog);
    const merge = { id, on: ["id", "title"], when_not_matched_insert_all: true };
    const body = arrowStream([
      { id: 1, title: "Stalker" },
      { id: 1, title: "Mirror" },
    ]);
    expect((await catalog.call("mergeInsertIntoTable", merge, { body })).body).toMatchObject({ num_inserted_rows: 1 });
    const rows = async () => (await catalog.call("countTableRows", { id, predicate: "id = 1" })).body;
    expect(await rows()).toBe(2);
    const none = await catalog.call("mergeInsertIntoTable", { ...merge, on: [] }, { body });
    expect(none.error).toMatchObject({ status: 400, detail: expect.stringContaining("on: ") });
  });

  test("are refused by the first merge into a declared table if they lack its key", async () => {
    const { id } = await declareTable(catalog);
    const merge = (key: string) =>
      catalog.call("mergeInsertIntoTable", { id, on: [key], when_not_matched_insert_all: true }, { body });
    const body = arrowStream(films);
    expect((await merge("film_id")).error).toMatchObject({
      status: 404,
      code: 12,
      detail: expect.stringContaining("film_id"),
    });
    expect((await merge("`id`")).body).toMatchObject({ num_inserted_rows: films.length, version: 1 });
  });

  test("creates, inserts, merges, updates and deletes rows, each in its own version", async () => {
    const id = await createFilms(catalog);
    const inserted = await catalog.call("insertIntoTable", { id }, { body: arrowStream([{ id: 4, title: "Mirror" }]) });
    expect(inserted.body).toMatchObject({ num_inserted_rows: 1, version: 2 });
    const merged = await catalog.call(
      "mergeInsertIntoTable",
      { id, on: ["id"], when_matched_update_all: true, when_not_matched_insert_all: true, timeout: "30s" },
      {
        body: arrowStream([
          { id: 4, title: "Nostalghia" },
          { id: 5, title: "Sacrifice" },
        ]),
      },
    );
    expect(merged.body).toMatchObject({ num_inserted_rows: 1, num_updated_rows: 1, num_deleted_rows: 0, version: 3 });
    const updated = await catalog.call("updateTable", { id, predicate: "id > 3", updates: [["id", "id * 10"]] });
    expect(updated.body).toMatchObject({ updated_rows: 2, version: 4 });
    expect((await catalog.call("deleteFromTable", { id, predicate: "id = 1" })).body).toMatchObject({ version: 5 });
    expect((await ids(id)).toSorted()).toEqual([2, 3, 40, 50]);
    expect((await catalog.call("countTableRows", { id })).body).toBe(4);
    expect((await catalog.call("countTableRows", { id, predicate: "id > 3" })).body).toBe(2);
    expect((await catalog.call("countTableRows", { id, version: 1 })).body).toBe(3);
    expect(await versionsOf(id)).toEqual([1, 2, 3, 4, 5]);
  });

  test("are counted by GET, as Lance's Rust client asks", async () => {
    const id = await createFilms(catalog);
    const answer = await catalog.fetch(
      `/v1/table/${id.join("%24")}/count_rows?predicate=${encodeURIComponent("id < 3")}`,
    );
    expect([answer.status, await answer.text()]).toEqual([200, "2"]);
  });

  test("are committed by a transaction that names the operation and the caller", async () => {
    const id = await createFilms(catalog);
    const key = await catalog.keyFor("anna", { [id[0] ?? ""]: "writer" });
    const { body } = await catalog.call(
      "insertIntoTable",
      { id },
      { key, body: arrowStream([{ id: 4, title: "Mirror" }]), headers: { "x-request-id": "request-of-anna" } },
    );
    expect(await transaction(body.transaction_id)).toEqual({
      operation: "InsertIntoTable",
      principal: "anna",
      request: "request-of-anna",
    });
  });

  test("writes rows to a branch without a change of main", async () => {
    const id = await createFilms(catalog);
    const db = await connectNamespace("rest", { uri: catalog.url, headers: { "x-api-key": catalog.adminKey } });
    const [namespace = "", name = ""] = id;
    await (await (await db.openTable(name, [namespace])).branches()).create("side");
    const body = arrowStream([{ id: 100, title: "Mirror" }]);
    expect((await catalog.call("insertIntoTable", { id, branch: "side" }, { body })).body.version).toBe(2);
    expect([await ids(id), await ids(id, { branch: "side" })]).toEqual([
      [1, 2, 3],
      [1, 2, 3, 100],
    ]);
    expect((await catalog.call("getTableStats", { id, branch: "side" })).body.num_rows).toBe(4);
  });

  test("are read of one version while another is committed", async () => {
    const id = await createFilms(catalog);
    const { body } = await catalog.call("queryTable", { id, k: 10 });
    await catalog.call("deleteFromTable", { id, predicate: "true" });
    expect(await readRows(body)).toHaveLength(3);
    expect(await ids(id)).toEqual([]);
    expect(await ids(id, { version: 1, filter: "id > 1", offset: 1 })).toEqual([3]);
  });

  test("are answered as plain values where they have dictionaries, which differ from one insert to the next", async () => {
    const [namespace = ""] = await createFilms(catalog);
    const id = [namespace, "dictionaries"];
    const stream = (title: string) => tableToIPC(tableFromJSON([{ id: 1, "a title": title }]), "stream");
    await catalog.call("createTable", { id }, { body: stream("Stalker") });
    await catalog.call("insertIntoTable", { id }, { body: stream("Mirror") });
    const { body } = await catalog.call("queryTable", { id, k: 10, with_row_id: true });
    expect((await readRows(body)).map((row) => row["a title"])).toEqual(["Stalker", "Mirror"]);

    const numbers = [namespace, "numbers"];
    const number = (value: number) => {
      const column = vectorFromArray([value], new Dictionary(new Int32(), new Int32()));
      return tableToIPC(new Table({ number: column }), "stream");
    };
    await catalog.call("createTable", { id: numbers }, { body: number(5) });
    await catalog.call("insertIntoTable", { id: numbers }, { body: number(6) });
    expect(await readRows((await catalog.call("queryTable", { id: numbers, k: 10 })).body)).toEqual([
      { number: 5 },
      { number: 6 },
    ]);
  });

  test("are answered as plain values where structs and lists have dictionaries", async () => {
    const id = [uniqueName("nested")];
    const field = new Field("it's", new Dictionary(new Utf8(), new Int32()), true);
    const stream = (value: string) => {
      const [child] = vectorFromArray([value], field.type).data;
      if (child === undefined) throw new Error("a vector has data");
      const struct = makeData({ type: new Struct([field]), length: 1, children: [child] });
      const list = makeData({ type: new List(field), length: 1, valueOffsets: Int32Array.of(0, 1), child });
      return tableToIPC(new Table({ struct: new Vector([struct]), list: new Vector([list]) }), "stream");
    };
    await catalog.call("createTable", { id }, { body: stream("Stalker") });
    await catalog.call("insertIntoTable", { id }, { body: stream("Mirror") });
    const rows = await readRows((await catalog.call("queryTable", { id, k: 10 })).body);
    expect(JSON.parse(JSON.stringify(rows))).toEqual([
      { struct: { "it's": "Stalker" }, list: ["Stalker"] },
      { struct: { "it's": "Mirror" }, list: ["Mirror"] },
    ]);
  });

  test("keep the names of items and the fields that are never null next to a dictionary", async () => {
    const id = [uniqueName("inner")];
    const kind = vectorFromArray(["film"], new Dictionary(new Utf8(), new Int32()));
    const of = vectorFromArray([{ year: 1979 }], new Struct([new Field("year", new Int32(), false)]));
    const type = new List(new Field("element", kind.type, false));
    const [child] = kind.data;
    if (child === undefined) throw new Error("a vector has data");
    const kinds = new Vector([makeData({ type, length: 1, valueOffsets: Int32Array.of(0, 1), child })]);
    await catalog.call("createTable", { id }, { body: tableToIPC(new Table({ kind, of, kinds }), "stream") });
    const { body } = await catalog.call("queryTable", { id, k: 1 });
    const answer = tableFromIPC(await new Response(body).bytes());
    const inner = answer.schema.fields.flatMap(({ type }) => type.children ?? []);
    expect(inner.map(({ name, nullable }) => ({ name, nullable }))).toEqual([
      { name: "year", nullable: false },
      { name: "element", nullable: false },
    ]);
  });

  test("select expressions and fields of structs next to a dictionary", async () => {
    const id = [uniqueName("selected")];
    const kind = vectorFromArray(["film", "book"], new Dictionary(new Utf8(), new Int32()));
    const year = vectorFromArray([1979, 1972], new Int32());
    const inner = new Struct([new Field("a year", new Int32(), true)]);
    const of = vectorFromArray([{ "a year": 1980 }, { "a year": 1973 }], inner);
    const body = tableToIPC(new Table({ kind, year, of }), "stream");
    await catalog.call("createTable", { id }, { body });
    const selected = async (columns: object) => {
      const answer = await catalog.call("queryTable", { id, k: 1, columns });
      return (await readRows(answer.body))[0];
    };
    expect(await selected({ column_aliases: { year: "year + 1", what: "kind" } })).toEqual({
      year: 1980,
      what: "film",
    });
    const names = ["`kind`", "of.a year", "_rowid"];
    expect(await selected({ column_names: names })).toEqual({ "`kind`": "film", "of.a year": 1980, _rowid: 0n });
  });

  test("have a column with the name of one that a search adds", async () => {
    const id = [uniqueName("found")];
    const body = tableToIPC(tableFromJSON([{ title: "Stalker", _distance: 1, _score: 2 }]), "stream");
    await catalog.call("createTable", { id }, { body });
    const rows = await readRows((await catalog.call("queryTable", { id, k: 10 })).body);
    expect(rows).toEqual([{ title: "Stalker", _distance: 1, _score: 2 }]);
  });

  test("finds rows by their content, with the requested columns", async () => {
    const namespace = uniqueName("ns");
    await catalog.call("createNamespace", { id: [namespace] });
    const id = [namespace, "films"];
    const stream = arrowStream([
      filmTable([
        { id: 1, title: "stalker in the zone" },
        { id: 2, title: "the mirror" },
        { id: 3, title: "mirror of the zone" },
      ]),
    ]);
    await catalog.call("createTable", { id }, { body: stream });
    await catalog.call("createTableIndex", { id, column: "title", index_type: "FTS", with_position: true });
    const found = async (query: object) =>
      (await readRows((await catalog.call("queryTable", { id, k: 10, ...query })).body))
        .map((row) => row.id)
        .toSorted();
    expect(await found({ full_text_query: { string_query: { query: "mirror" } } })).toEqual([2, 3]);
    const structured = (query: object) => found({ full_text_query: { structured_query: { query } } });
    const match = (terms: string) => ({ match: { terms, column: "title" } });
    expect(await structured(match("zone"))).toEqual([1, 3]);
    expect(await structured({ phrase: { terms: "the zone", column: "title" } })).toEqual([1, 3]);
    expect(await structured({ boolean: { must: [match("zone")], must_not: [match("mirror")], should: [] } })).toEqual([
      1,
    ]);
    expect(
      await structured({ multi_match: { match_queries: [match("stalker"), match("zone")].map((m) => m.match) } }),
    ).toEqual([1, 3]);
    expect(await structured({ boost: { positive: match("mirror"), negative: match("zone") } })).toEqual([2, 3]);
    const { body } = await catalog.call("queryTable", {
      id,
      k: 10,
      filter: "id = 2",
      with_row_id: true,
      columns: { column_aliases: { name: "title" } },
    });
    expect(await readRows(body)).toEqual([{ name: "the mirror", _rowid: 1n }]);
    const explained = await catalog.call("explainTableQueryPlan", { id, query: { k: 3, filter: "id = 2" } });
    expect(explained.body).toContain("LanceRead");
    expect((await catalog.call("analyzeTableQueryPlan", { id, k: 3 })).body).toContain("output_rows");
  });

  test("are read few at a time where they are long", async () => {
    const at = [uniqueName("images")];
    const images = Array.from({ length: 24 }, () => randomBytes(1024 ** 2));
    const table = new Table({
      id: vectorFromArray([...images.keys()], new Int32()),
      image: vectorFromArray(images, new LargeBinary()),
    });
    await catalog.call("createTable", { id: at }, { body: tableToIPC(table, "stream") });
    const batchesOf = async (columns: object) => {
      const { body } = await catalog.call("queryTable", { id: at, k: 100, columns });
      return tableFromIPC(new Uint8Array(await new Response(body).arrayBuffer())).batches.map(({ numRows }) => numRows);
    };
    expect(Math.max(...(await batchesOf({ column_names: ["image"] })))).toBeLessThan(10);
    expect(await batchesOf({ column_names: ["id"] })).toEqual([24]);
  });

  test("are searched by their vectors, by an index or without", async () => {
    const namespace = uniqueName("ns");
    await catalog.call("createNamespace", { id: [namespace] });
    const id = [namespace, "vectors"];
    const numbers = Array.from({ length: 300 }, (_, index) => index);
    const vectors = new Table({
      id: vectorFromArray(numbers),
      vector: vectorFromArray(
        numbers.map((number) => [number, 0, 0, 1]),
        new FixedSizeList(4, new Field("item", new Float32(), true)),
      ),
    });
    expect((await catalog.call("createTable", { id }, { body: arrowStream([vectors]) })).body.version).toBe(1);
    const nearest = async (more: object = {}) => ids(id, { k: 2, vector: { single_vector: [41.8, 0, 0, 1] }, ...more });
    expect(await nearest()).toEqual([42, 41]);
    expect(await nearest({ filter: "id < 40" })).toEqual([39, 38]);
    await catalog.call("createTableIndex", {
      id,
      column: "vector",
      index_type: "ivf_flat",
      distance_type: "L2",
      num_partitions: 2,
      name: "by_vector",
    });
    const stats = await catalog.call("describeTableIndexStats", { id, indexName: "by_vector" });
    expect(stats.body).toMatchObject({ index_type: "IVF_FLAT", distance_type: "l2", num_indexed_rows: 300 });
    expect(await nearest({ nprobes: 2, vector_column: "vector" })).toEqual([42, 41]);
  });
});

describe("a table's columns and indices", () => {
  test("compare vectors of bits in structs by their hamming distance", async () => {
    const id = [uniqueName("bits")];
    const inner = new Struct([new Field("bits", new FixedSizeList(1, new Field("item", new Uint8(), true)), true)]);
    const body = tableToIPC(new Table({ of: vectorFromArray([{ bits: [1] }, { bits: [6] }], inner) }), "stream");
    await catalog.call("createTable", { id }, { body });
    const index = { index_type: "IVF_FLAT", distance_type: "hamming", num_partitions: 1 };
    await catalog.call("createTableIndex", { id, column: "`of`.bits", ...index });
    const stats = await catalog.call("describeTableIndexStats", { id, indexName: "of.bits_idx" });
    expect(stats.body).toMatchObject({ distance_type: "hamming", num_indexed_rows: 2 });
  });

  test("are added, altered and dropped", async () => {
    const id = await createFilms(catalog);
    const schema = async () =>
      (await catalog.call("describeTable", { id, load_detailed_metadata: true })).body.schema?.fields.map(
        ({ name, type }) => `${name} ${type.type}`,
      );
    const added = await catalog.call("alterTableAddColumns", {
      id,
      new_columns: [{ name: "twice", expression: "id * 2" }],
    });
    expect(added.body.version).toBe(2);
    await catalog.call("alterTableAlterColumns", {
      id,
      alterations: [{ path: "twice", rename: "double", data_type: { type: "float32" } }],
    });
    expect(await schema()).toEqual(["id float64", "title utf8", "double float32"]);
    await catalog.call("alterTableDropColumns", { id, columns: ["title"] });
    expect(await schema()).toEqual(["id float64", "double float32"]);
  });

  test("have metadata that is merged, deleted and replaced", async () => {
    const id = await createFilms(catalog);
    const update = async (metadata: object, replace?: boolean) =>
      (await catalog.call("updateFieldMetadata", { id, updates: [{ path: "id", metadata, replace }] })).body.fields;
    expect(await update({ unit: "m", source: "x" })).toEqual({ id: { unit: "m", source: "x" } });
    expect(await update({ unit: "km", source: null })).toEqual({ id: { unit: "km" } });
    expect(await update({ only: "this" }, true)).toEqual({ id: { only: "this" } });
  });

  test("have metadata that is returned by the path in the request", async () => {
    const id = await createFilms(catalog);
    const new_columns = [{ name: "s", expression: "named_struct('x.y', title)" }];
    await catalog.call("alterTableAddColumns", { id, new_columns });
    const path = "s.`x.y`";
    const { body } = await catalog.call("updateFieldMetadata", { id, updates: [{ path, metadata: { unit: "m" } }] });
    expect(body.fields).toEqual({ [path]: { unit: "m" } });
  });

  test("are restored with the rows", async () => {
    const id = await createFilms(catalog);
    await catalog.call("alterTableDropColumns", { id, columns: ["title"] });
    const { body } = await catalog.call("restoreTable", { id, version: 1 });
    expect(await transaction(body.transaction_id)).toMatchObject({ operation: "RestoreTable" });
    expect(await versionsOf(id)).toEqual([1, 2, 3]);
    expect(await readRows((await catalog.call("queryTable", { id, k: 1 })).body)).toEqual([
      { id: 1, title: "Stalker" },
    ]);
    expect((await catalog.call("restoreTable", { id, version: 9 })).error).toMatchObject({ status: 404, code: 11 });
  });

  test("have indices that are listed, described and dropped", async () => {
    const id = await createFilms(catalog);
    for (const column of ["id", "title"])
      await catalog.call("createTableScalarIndex", { id, column, index_type: "btree", name: `by_${column}` });
    const list = async (more: object = {}) => (await catalog.call("listTableIndices", { id, ...more })).body;
    expect((await list()).indexes).toMatchObject([
      { index_name: "by_id", columns: ["id"], status: "SUCCEEDED", num_indexed_rows: 3, num_unindexed_rows: 0 },
      { index_name: "by_title", columns: ["title"] },
    ]);
    const page = await list({ limit: 1 });
    expect(page.indexes.map((each) => each.index_name)).toEqual(["by_id"]);
    expect((await list({ page_token: page.page_token })).indexes.map((each) => each.index_name)).toEqual(["by_title"]);
    expect((await list({ version: 1 })).indexes).toEqual([]);
    expect((await catalog.call("getTableStats", { id })).body).toMatchObject({ num_rows: 3, num_indices: 2 });
    await catalog.call("dropTableIndex", { id, indexName: "by_id" });
    expect((await list()).indexes).toHaveLength(1);
    for (const name of ["dropTableIndex", "describeTableIndexStats"] as const)
      expect((await catalog.call(name, { id, indexName: "by_id" })).error).toMatchObject({ status: 404, code: 6 });
  });
});

test("an index of a field in the first column is listed by the whole path", async () => {
  const id = [uniqueName("ns"), "nested"];
  await catalog.call("createNamespace", { id: id.slice(0, 1) });
  const struct = new Struct([new Field("k", new Int32(), true)]);
  const body = tableToIPC(new Table({ s: vectorFromArray([{ k: 1 }], struct) }), "stream");
  await catalog.call("createTable", { id }, { body });
  await catalog.call("createTableScalarIndex", { id, column: "s.k", index_type: "BTREE", name: "by_k" });
  const { indexes } = (await catalog.call("listTableIndices", { id })).body;
  expect(indexes).toMatchObject([{ index_name: "by_k", columns: ["s.k"] }]);
});

describe("creating a table", () => {
  const rows = [{ id: 7, title: "Mirror" }];
  const create = (id: string[], more: object = {}, options: object = {}) =>
    catalog.call("createTable", { id, ...more }, { body: arrowStream(rows), ...options });

  test("supports the modes Create, ExistOk and Overwrite", async () => {
    const id = await createFilms(catalog);
    expect((await create(id)).error).toMatchObject({ status: 409, code: 5 });
    const there = (await create(id, { mode: "exist_ok" })).body;
    expect(there.version).toBeUndefined();
    expect(await ids(id)).toEqual([1, 2, 3]);
    const overwritten = (await create(id, { mode: "Overwrite", properties: JSON.stringify({ owner: "me" }) })).body;
    expect(overwritten).toMatchObject({ version: 2, location: there.location, properties: { owner: "me" } });
    expect((await catalog.call("describeTable", { id })).body.properties).toEqual({ owner: "me" });
    expect(await ids(id)).toEqual([7]);
    expect(await ids(id, { version: 1 })).toEqual([1, 2, 3]);
  });

  test("ignores empty maps, as Java's client sends them, and rejects options of a store", async () => {
    const id = [uniqueName("java")];
    const path = `/v1/table/${id[0]}/create?mode=create&properties=%7B%7D&storage_options=`;
    const headers = { "x-api-key": catalog.adminKey, "content-type": "application/vnd.apache.arrow.stream" };
    const request = { method: "POST", headers, body: Buffer.from(arrowStream(rows)) };
    expect((await catalog.fetch(`${path}%7B%22a%22%3A%22b%22%7D`, request)).status).toBe(406);
    expect((await catalog.fetch(`${path}%7B%7D`, request)).status).toBe(200);
    expect(await ids(id)).toEqual([7]);
  });

  test("answers a client that continues to send rows to an existing table", async () => {
    const id = await createFilms(catalog);
    const url = `${catalog.url}/v1/table/${id.join("%24")}/create?mode=ExistOk`;
    const headers = { "x-api-key": catalog.adminKey, "content-type": "application/vnd.apache.arrow.stream" };
    const request = httpRequest(url, { method: "POST", headers });
    const answered = once(request, "response");
    const sent = pipeline(slowly(Buffer.alloc(1024 * 1024), 20), request);
    expect((await answered)[0].statusCode).toBe(200);
    await sent;
  });

  test("keeps the rows when the answer to its commit is lost", async () => {
    let losesAnswer = false;
    const own = await startTestCatalog(
      {},
      {
        wrapStore: (store) => {
          const write = store.write.bind(store);
          return Object.assign(store, {
            write: async (...args: Parameters<typeof write>) => {
              const result = await write(...args);
              if (losesAnswer && args[1]?.locking === "tables") throw new CatalogError("ServiceUnavailable", "lost");
              return result;
            },
          });
        },
      },
    );
    await own.call("createNamespace", { id: ["ns"] });
    const id = ["ns", "t"];
    losesAnswer = true;
    const lost = await own.call("createTable", { id }, { body: arrowStream(rows) });
    losesAnswer = false;
    expect(lost.error.status).toBe(503);
    expect((await own.call("createTable", { id }, { body: arrowStream(rows) })).error.code).toBe(5);
    expect((await own.call("countTableRows", { id })).body).toBe(1);
    await own.stop();
  });

  test("keeps all rows of several versions when the storage fails while these are placed", async () => {
    let fails = true;
    const own = await startTestCatalog(
      {},
      {
        wrapStorage: (storage) => ({
          at: async (location) => {
            const store = await storage.at(location);
            const copy: typeof store.copy = async (from, to, replaced) => {
              if (fails && to.endsWith(finalName(2))) throw new CatalogError("ServiceUnavailable", "it fails");
              return store.copy(from, to, replaced);
            };
            return { ...store, copy };
          },
        }),
      },
    );
    // A table with a blob column has one version with its columns, and a second one with its rows.
    const blobs = new Table({ blob: vectorFromArray([Buffer.from("a"), Buffer.from("b")], new LargeBinary()) });
    const metadata = new Map([["lance-encoding:blob", "true"]]);
    blobs.schema.fields[0] = new Field("blob", new LargeBinary(), true, metadata);
    const create = () => own.call("createTable", { id: ["t"] }, { body: tableToIPC(blobs, "stream") });
    expect((await create()).error).toMatchObject({ status: 409, error: expect.stringContaining("Do not repeat it") });
    fails = false;
    expect((await create()).error.code).toBe(5);
    expect((await own.call("countTableRows", { id: ["t"] })).body).toBe(2);
    await own.stop();
  });

  test("writes batches with a long dictionary as one version", async () => {
    const id = [(await createFilms(catalog))[0] ?? "", "categories"];
    const text = new Dictionary(new Utf8(), new Int32());
    const rows = new Table({ text: vectorFromArray(["x".repeat(40_000_000), "y", "z"], text) });
    const batches = [0, 1, 2].flatMap((row) => rows.slice(row, row + 1).batches);
    const body = RecordBatchStreamWriter.writeAll(batches).toUint8Array(true);
    expect((await catalog.call("createTable", { id }, { body })).body.version).toBe(1);
  });

  test("refuses dictionaries without end", async () => {
    const id = [(await createFilms(catalog))[0] ?? "", "hoarder"];
    const column = (bytes: number) => vectorFromArray(["x".repeat(bytes)], new Dictionary(new Utf8(), new Int32()));
    // The catalog discards the rest for a limited time, so the last one is short.
    const columns = { a: column(32_000_000), b: column(32_000_000), c: column(4_000_000) };
    const stream = tableToIPC(new Table(columns), "stream");
    const { error } = await catalog.call("createTable", { id }, { body: stream });
    expect(error).toMatchObject({ status: 413, detail: expect.stringContaining("dictionaries") });
  });

  test("creates an empty table from a stream with only a schema", async () => {
    const id = [(await createFilms(catalog))[0] ?? "", "empty"];
    const { body } = await catalog.call("createTable", { id }, { body: arrowStream([]) });
    expect(body.version).toBe(1);
    expect((await catalog.call("countTableRows", { id })).body).toBe(0);
  });

  test("leaves nothing behind when it fails", async () => {
    const [namespace = ""] = await createFilms(catalog);
    const id = [namespace, "broken"];
    const whole = arrowStream(rows);
    const folders = () => readdirSync(`${catalog.dataDir}/warehouse/${namespace}`);
    const before = folders();
    for (const [body, why] of [
      [new Uint8Array(), "schema"],
      [new TextEncoder().encode("no Arrow at all"), "message"],
      [whole.subarray(0, whole.length - 20), "ends within"],
    ] as const) {
      const { error } = await catalog.call("createTable", { id }, { body });
      expect(error).toMatchObject({ status: 400, code: 13 });
      expect(error.detail).toContain(why);
    }
    expect((await catalog.call("tableExists", { id })).status).toBe(404);
    expect(folders()).toEqual(before);
  });

  test("is 404 without its namespace, and 403 where the caller may not write", async () => {
    expect((await create([uniqueName("missing"), "t"])).error).toMatchObject({ status: 404, code: 1 });
    const id = await createFilms(catalog);
    const key = await catalog.keyFor("reader", { $: "reader" });
    expect((await create(id, { mode: "Overwrite" }, { key })).status).toBe(403);
  });

  test("fills a table that was only declared", async () => {
    const id = [(await createFilms(catalog))[0] ?? "", "declared"];
    const { location } = (await catalog.call("declareTable", { id, properties: { kept: "yes" } })).body;
    const { body } = await catalog.call("insertIntoTable", { id }, { body: arrowStream(rows) });
    expect(body).toMatchObject({ version: 1, num_inserted_rows: 1 });
    expect((await catalog.call("describeTable", { id })).body).toMatchObject({ location, properties: { kept: "yes" } });
    expect(await ids(id)).toEqual([7]);
  });
});

describe("a version that a client has cleaned up without the catalog", () => {
  test("is 404 for reads of it and for branches that start at it", async () => {
    const id = await createFilms(catalog);
    await catalog.call("deleteFromTable", { id, predicate: "id = 2" });
    const { location } = (await catalog.call("describeTable", { id })).body;
    rmSync(`/${pathOf({ id, location: location ?? "" })}/_versions/${finalName(1)}`);
    const at = { id, version: 1 };
    const answers = [
      await catalog.call("queryTable", { ...at, k: 10 }),
      await catalog.call("countTableRows", at),
      await catalog.call("explainTableQueryPlan", { id, query: { version: 1, k: 10 } }),
      await catalog.call("describeTable", { ...at, load_detailed_metadata: true }),
      await catalog.call("restoreTable", at),
      await catalog.call("createTableBranch", { id, name: "from-1", from_version: 1 }),
    ];
    for (const { error } of answers) expect(error).toMatchObject({ status: 404, code: 11 });
    expect(await ids(id)).toEqual([1, 3]);
    expect((await catalog.call("createTableBranch", { id, name: "from-1" })).status).toBe(200);
  });
});

describe("a table whose data file is missing", () => {
  test("names the file, and versions without that file stay usable", async () => {
    const id = await createFilms(catalog);
    const location = (await catalog.call("describeTable", { id })).body.location ?? "";
    const folder = `/${pathOf({ id, location })}/data`;
    const kept = readdirSync(folder);
    await catalog.call("insertIntoTable", { id }, { body: arrowStream([{ id: 9, title: "Nine" }]) });
    const [missing = ""] = readdirSync(folder).filter((file) => !kept.includes(file));
    rmSync(join(folder, missing));
    for (const { error } of [
      await catalog.call("queryTable", { id, k: 10 }),
      await catalog.call("countTableRows", { id, predicate: "id > 0" }),
      await catalog.call("deleteFromTable", { id, predicate: "id = 2" }),
      await catalog.call("updateTable", { id, updates: [["title", "'x'"]] }),
    ]) {
      expect(error).toMatchObject({ status: 500, code: 18 });
      expect(error.error).toContain(`data/${missing} is missing`);
      expect(error.error).not.toContain(folder);
    }
    expect(await versionsOf(id)).toEqual([1, 2]);
    await catalog.call("restoreTable", { id, version: 1 });
    expect(await ids(id)).toEqual([1, 2, 3]);
  });
});

describe("a table with a damaged file", () => {
  const damages: readonly (readonly [string, (content: Uint8Array) => Uint8Array])[] = [
    ["is empty", () => new Uint8Array()],
    ["is cut", (content) => content.subarray(0, 10)],
    ["is cut by half", (content) => content.subarray(0, content.length / 2)],
    ["has other bytes", (content) => content.map((_, index) => (index * 7) % 251)],
  ];
  test.each(damages)("is no error of the request when its latest manifest %s", async (_, damage) => {
    const id = await createFilms(catalog);
    await catalog.call("insertIntoTable", { id }, { body: arrowStream([{ id: 9, title: "Nine" }]) });
    const { location = "" } = (await catalog.call("describeTable", { id })).body;
    const manifest = `/${pathOf({ id, location })}/_versions/${finalName(2)}`;
    writeFileSync(manifest, damage(readFileSync(manifest)));
    for (const { error } of [
      await catalog.call("queryTable", { id, k: 10 }),
      await catalog.call("countTableRows", { id }),
      await catalog.call("insertIntoTable", { id }, { body: arrowStream(films) }),
      await catalog.call("restoreTable", { id, version: 1 }),
    ])
      expect(error).toMatchObject({ status: 500, code: 18, detail: expect.stringContaining("is damaged") });
    expect((await catalog.call("countTableRows", { id, version: 1 })).body).toBe(films.length);
  });

  test.each(damages)("is no error of the request when a data file %s", async (_, damage) => {
    const id = await createFilms(catalog);
    const { location = "" } = (await catalog.call("describeTable", { id })).body;
    const folder = `/${pathOf({ id, location })}/data`;
    const [name = ""] = readdirSync(folder);
    writeFileSync(join(folder, name), damage(readFileSync(join(folder, name))));
    const { error } = await catalog.call("queryTable", { id, k: 10 });
    expect(error).toMatchObject({ status: 500, code: 18, detail: expect.stringContaining("is damaged") });
  });
});

describe("a stream of rows", () => {
  /** Returns batches of about the same size, whose content compresses well within a batch. */
  const batchesOf = (count: number, bytes: number) => {
    const text = "x".repeat(1024 * 1024);
    return Array.from({ length: count }, (_, batch) =>
      filmTable(Array.from({ length: bytes / text.length }, (_, row) => ({ id: batch * 1000 + row, title: text }))),
    );
  };
  const mebibyte = 1024 * 1024;
  /** A stream of three versions with 75 rows. */
  let long: Uint8Array;
  /** The first 45 rows of it, in two versions. */
  let ofTwoVersions: Uint8Array;
  beforeAll(() => {
    const batches = batchesOf(5, 15 * mebibyte);
    long = arrowStream(batches);
    ofTwoVersions = arrowStream(batches.slice(0, 3));
  });
  const stagedIn = (location: string) =>
    readdirSync(`/${pathOf({ id: [], location })}/_versions`).filter((name) => name.includes(".manifest-"));

  /**
   * Waits until versions are held back. A held-back version has a different name after its commit by the library, and
   * the previous one is prepared by then.
   */
  const areHeldBack = (location: string, count: number) => {
    const held = () => stagedIn(location).filter((name) => name.endsWith("-held"));
    return expect.poll(() => held().length).toBeGreaterThanOrEqual(count);
  };

  test("is inserted as several versions that appear at once when it is long", async () => {
    const id = await createFilms(catalog);
    const { location } = (await catalog.call("describeTable", { id })).body;
    const seen = new Set<number>();
    const half = long.length - 20 * mebibyte;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(long.subarray(0, half)),
      pull: async (controller) => {
        await areHeldBack(location, 1);
        seen.add(Number((await catalog.call("countTableRows", { id })).body));
        controller.enqueue(long.subarray(half));
        controller.close();
      },
    });
    const { body: answer } = await catalog.call("insertIntoTable", { id }, { body });
    expect(answer).toMatchObject({ num_inserted_rows: 75, version: 4 });
    expect([...seen]).toEqual([3]);
    expect((await catalog.call("countTableRows", { id })).body).toBe(78);
    expect(await versionsOf(id)).toEqual([1, 2, 3, 4]);
    expect(await transaction(answer.transaction_id)).toMatchObject({ operation: "InsertIntoTable" });
    // Staged names are deleted soon after the response.
    await expect.poll(() => stagedIn(location)).toEqual([]);
  });

  test("fails as a whole and leaves no version when it is long and another writer commits meanwhile", async () => {
    const id = await createFilms(catalog);
    const { location } = (await catalog.call("describeTable", { id })).body;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(ofTwoVersions.subarray(0, -100)),
      pull: async (controller) => {
        await areHeldBack(location, 1);
        await catalog.call("deleteFromTable", { id, predicate: "id = 1" });
        controller.enqueue(ofTwoVersions.subarray(-100));
        controller.close();
      },
    });
    expect((await catalog.call("insertIntoTable", { id }, { body })).error).toMatchObject({ status: 409, code: 14 });
    expect(await ids(id)).toEqual([2, 3]);
    expect(await versionsOf(id)).toEqual([1, 2]);
    expect(stagedIn(location)).toEqual([]);
  });

  test("replaces no rows of a faster writer when it begins a table", async () => {
    const source = await createFilms(catalog);
    const { location: filled } = (await catalog.call("describeTable", { id: source })).body;
    const { id, location } = await declareTable(catalog);
    const bytes = arrowStream(batchesOf(2, 15 * mebibyte));
    const headers = { "x-api-key": catalog.adminKey, "content-type": "application/vnd.apache.arrow.stream" };
    const insert = httpRequest(`${catalog.url}/v1/table/${id.join("%24")}/insert`, { method: "POST", headers });
    const answered = once(insert, "response");
    // These bytes exceed the buffers of the connection. The catalog reads them after it has found no version.
    await new Promise((resolve) => insert.write(bytes.subarray(0, -100), resolve));
    cpSync(`/${pathOf({ id: source, location: filled })}`, `/${pathOf({ id, location })}`, { recursive: true });
    insert.end(bytes.subarray(-100));
    const [answer] = await answered;
    expect(await json(answer)).toMatchObject({
      status: 409,
      error: expect.stringContaining("was written concurrently"),
    });
    expect(await ids(id)).toEqual([1, 2, 3]);
    expect(await versionsOf(id)).toEqual([1]);
  });

  test("leaves the table unchanged when it is interrupted", async () => {
    const id = await createFilms(catalog);
    const body = ofTwoVersions.subarray(0, -100);
    const { error } = await catalog.call("insertIntoTable", { id, mode: "overwrite" }, { body });
    expect(error).toMatchObject({ status: 400, code: 13 });
    expect(await ids(id)).toEqual([1, 2, 3]);
    expect(await versionsOf(id)).toEqual([1]);
  });

  test("replaces the rows of a branch by none, and only those", async () => {
    const id = await createFilms(catalog);
    await catalog.call("createTableBranch", { id, name: "exp" });
    const request = { id, mode: "overwrite", branch: "exp" };
    const { status, body } = await catalog.call("insertIntoTable", request, { body: arrowStream([]) });
    expect([status, body]).toEqual([200, expect.objectContaining({ num_inserted_rows: 0, version: 2 })]);
    expect((await catalog.call("countTableRows", { id, branch: "exp" })).body).toBe(0);
    expect(await ids(id)).toEqual([1, 2, 3]);
  });

  test("creates a table of several versions, too", async () => {
    const id = [(await createFilms(catalog))[0] ?? "", "long"];
    const { body } = await catalog.call("createTable", { id }, { body: ofTwoVersions });
    expect(body.version).toBe(2);
    expect((await catalog.call("countTableRows", { id })).body).toBe(45);
  });

  test("is 413 with a batch that is too large, and as a merge that is too large", async () => {
    const id = await createFilms(catalog);
    // The head of a batch has its length, so the client sends only the beginning of the batch.
    const large = { body: arrowStream(batchesOf(1, 65 * mebibyte)).subarray(0, mebibyte) };
    const refused = (await catalog.call("insertIntoTable", { id }, large)).error;
    expect(refused).toMatchObject({ status: 413, type: "/errors/payload-too-large" });
    expect(refused.detail).toContain("smaller batches of 31 rows each");
    const oneRow = filmTable([{ id: 1, title: "x".repeat(65 * mebibyte) }]);
    const indivisible = { body: arrowStream([oneRow]).subarray(0, mebibyte) };
    expect((await catalog.call("insertIntoTable", { id }, indivisible)).error.detail).toMatch(/smaller batches$/);
    const merge = { id, on: ["id"], when_not_matched_insert_all: true };
    expect((await catalog.call("mergeInsertIntoTable", merge, { body: ofTwoVersions })).error.status).toBe(413);
    expect(await versionsOf(id)).toEqual([1]);
  });

  test("rejects rows with other columns and names the differences", async () => {
    const id = await createFilms(catalog);
    const body = tableToIPC(new Table({ other: vectorFromArray([1, 2]) }), "stream");
    const { error } = await catalog.call("insertIntoTable", { id }, { body });
    expect(error).toMatchObject({ status: 400, code: 20 });
    expect(error.detail).toContain("other");
    expect(error.detail).not.toMatch(/\.rs|cargo/);
  });

  test("rejects an Arrow file and names the required format", async () => {
    const id = await createFilms(catalog);
    const { error } = await catalog.call("insertIntoTable", { id }, { body: tableToIPC(filmTable(films), "file") });
    expect(error.detail).toContain("Send an Arrow stream");
  });
});

describe("writers at once", () => {
  test("lose nothing", async () => {
    const id = await createFilms(catalog, []);
    const answers = await Promise.all(
      films.flatMap(({ id: number }) =>
        [0, 10, 20].map((tens) =>
          catalog.call("insertIntoTable", { id }, { body: arrowStream([{ id: number + tens, title: "x" }]) }),
        ),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => 200));
    expect((await ids(id)).toSorted()).toEqual([1, 11, 12, 13, 2, 21, 22, 23, 3]);
    expect(await versionsOf(id)).toHaveLength(10);
  });

  const times = Array.from({ length: 8 }, (_, index) => index);

  test.each([["exist_ok"], ["overwrite"]])("all succeed in creating one table with the mode %s", async (mode) => {
    const id = [uniqueName("raced")];
    const body = arrowStream(films.slice(0, 1));
    const answers = await Promise.all(times.map(() => catalog.call("createTable", { id, mode } as never, { body })));
    expect(answers.map(({ status }) => status)).toEqual(times.map(() => 200));
    expect(await ids(id)).toEqual([1]);
  });

  test("all insert into a table that was only declared", async () => {
    const id = [uniqueName("raced")];
    await catalog.call("declareTable", { id });
    const insert = (row: number) =>
      catalog.call("insertIntoTable", { id }, { body: arrowStream([{ id: row, title: "x" }]) });
    expect((await Promise.all(times.map(insert))).map(({ status }) => status)).toEqual(times.map(() => 200));
    expect((await ids(id)).toSorted()).toEqual(times);
  });

  test.each([["create"], ["exist_ok"], ["overwrite"]])("write a declared table with the mode %s", async (mode) => {
    const id = [uniqueName("declared")];
    const { location } = (await catalog.call("declareTable", { id, properties: { owner: "me" } })).body;
    const { body } = await catalog.call("createTable", { id, mode } as never, { body: arrowStream(films) });
    expect(body).toMatchObject({ location, version: 1, properties: { owner: "me" } });
    expect((await catalog.call("createTable", { id }, { body: arrowStream(films) })).error.status).toBe(409);
  });

  test("change the same rows, each once", async () => {
    const id = await createFilms(catalog);
    const update = () => catalog.call("updateTable", { id, predicate: "id = 1", updates: [["title", "title || '!'"]] });
    expect((await Promise.all(times.map(update))).map(({ status }) => status)).toEqual(times.map(() => 200));
    expect((await catalog.call("countTableRows", { id, predicate: "title = 'Stalker!!!!!!!!'" })).body).toBe(1);
  });

  test("are not held up by a rate limit that their own requests used up", async () => {
    const limited = await startTestCatalog({ TILTYARD_RATE_LIMIT: "1" });
    try {
      const key = await limited.keyFor("slow", { $: "admin" });
      const created = await limited.call("createTable", { id: ["t"] }, { key, body: arrowStream(films) });
      expect(created.body.version).toBe(1);
    } finally {
      await limited.stop();
    }
  });
});

describe("a table whose versions were all deleted", () => {
  const one = () => ({ body: arrowStream(films.slice(0, 1)) });
  test.each([
    ["insertIntoTable", {}],
    ["insertIntoTable", { mode: "overwrite" }],
    ["mergeInsertIntoTable", { on: ["id"], when_not_matched_insert_all: true }],
    ["createTable", {}],
    ["createTable", { mode: "overwrite" }],
    ["createTable", { mode: "exist_ok" }],
  ] as const)("is written again by %s with %j, beyond the tags of its former versions", async (name, request) => {
    const id = await createFilms(catalog);
    await catalog.call("createTableTag", { id, tag: "former", version: 1 });
    await catalog.call("createTableBranch", { id, name: "side" });
    await catalog.call("batchDeleteTableVersions", { id, ranges: [{ start_version: 0, end_version: -1 }] });
    const described = { id, check_declared: true, load_detailed_metadata: true };
    expect((await catalog.call("describeTable", described)).body).toMatchObject({ is_only_declared: true });

    expect((await catalog.call(name, { id, ...request }, one())).body).toMatchObject({ version: 2 });
    expect(await ids(id)).toEqual([1]);
    expect(await versionsOf(id)).toEqual([2]);
    expect(await ids(id, { branch: "side" })).toEqual([1, 2, 3]);
    expect((await catalog.call("describeTable", { id, tag: "former" })).error).toMatchObject({ status: 404, code: 11 });
  });
});

describe("bad input", () => {
  test.each([
    ["countTableRows", { predicate: "id = = 1" }, 400, 13],
    ["countTableRows", { predicate: "nope = 1" }, 404, 12],
    ["deleteFromTable", { predicate: "nope = 1" }, 404, 12],
    ["updateTable", { updates: [["nope", "1"]] }, 404, 12],
    [
      "updateTable",
      {
        updates: [
          ["title", "'a'"],
          ["id", "1"],
          ["title", "'b'"],
        ],
      },
      400,
      13,
    ],
    ["alterTableDropColumns", { columns: ["nope"] }, 404, 12],
    ["alterTableAlterColumns", { alterations: [{ path: "nope", rename: "x" }] }, 404, 12],
    ["alterTableAlterColumns", { alterations: [{ path: "id" }] }, 400, 13],
    [
      "alterTableAlterColumns",
      {
        alterations: [
          { path: "id", rename: "x" },
          { path: "`id`", rename: "y" },
        ],
      },
      400,
      13,
    ],
    ["alterTableAlterColumns", { alterations: [{ path: "id", data_type: { type: "struct" } }] }, 400, 13],
    ["alterTableAddColumns", { new_columns: [{ name: "x" }] }, 400, 13],
    ["alterTableAddColumns", { new_columns: [{ name: "id", computed: "id" }] }, 400, 13],
    ["updateFieldMetadata", { updates: [{ path: "nope", metadata: {} }] }, 404, 12],
    ["updateFieldMetadata", { updates: ["1", "2"].map((a) => ({ path: "id", metadata: { a } })) }, 400, 13],
    ["createTableIndex", { column: "nope", index_type: "BTREE" }, 404, 12],
    ["createTableIndex", { column: "id", index_type: "MAGIC" }, 400, 13],
    ["createTableIndex", { column: "title", index_type: "IVF_PQ" }, 400, 13],
    ["createTableIndex", { column: "id", index_type: "IVF_PQ", distance_type: "far" }, 400, 13],
    ["createTableScalarIndex", { column: "id", index_type: "IVF_PQ" }, 400, 13],
    ["queryTable", { k: 1, vector: { single_vector: [1, 2] } }, 404, 12],
    ["queryTable", { k: 1, full_text_query: { structured_query: { query: {} } } }, 400, 13],
    ["queryTable", { k: 1, columns: { column_names: ["id"], column_aliases: { x: "id" } } }, 400, 13],
    ["queryTable", { filter: "id = 1" }, 400, 13],
    ["queryTable", { k: 1, version: 9 }, 404, 11],
    ["queryTable", { k: 1, branch: "b" }, 404, 22],
  ] as const)("is answered for %s %j with %i and code %i", async (name, request, status, code) => {
    const id = await createFilms(catalog);
    const { error } = await catalog.call(name, { id, ...request });
    expect(error).toMatchObject({ status, code });
    expect(error.detail).not.toMatch(/\.rs\b|cargo|view\$table/);
  });

  test("is 404 for a missing table before its rows are read", async () => {
    const id = [uniqueName("ns"), "missing"];
    const body = new TextEncoder().encode("no Arrow at all");
    for (const name of ["insertIntoTable", "mergeInsertIntoTable"] as const)
      expect((await catalog.call(name, { id, on: ["id"] }, { body })).error).toMatchObject({ status: 404, code: 4 });
  });
});

describe("an operator", () => {
  test("turns operations on rows off, and leaves those on metadata", async () => {
    const off = await startTestCatalog({ TILTYARD_DATA_OPERATIONS: "off" });
    try {
      const db = await connectNamespace("rest", { uri: off.url, headers: { "x-api-key": off.adminKey } });
      await db.createTable("t", [{ id: 1 }]);
      const id = ["t"];
      const rows = { body: arrowStream(films) };
      for (const answer of [
        await off.call("queryTable", { id, k: 1 }),
        await off.call("insertIntoTable", { id }, rows),
        await off.call("createTable", { id: ["u"] }, rows),
        await off.call("createTableIndex", { id, column: "id", index_type: "BTREE" }),
        await off.call("countTableRows", { id }),
      ]) {
        expect(answer.error).toMatchObject({ status: 406, code: 0 });
        expect(answer.error.detail).toContain("TILTYARD_DATA_OPERATIONS");
      }
      expect((await off.call("describeTable", { id, load_detailed_metadata: true })).body.version).toBe(1);
    } finally {
      await off.stop();
    }
  });

  test("an installation without the library says what to install, and has all the rest", async () => {
    const dataDir = temporaryFolder("tiltyard-without-lancedb-");
    const program = startProgram(["--import", "./test/support/without-lancedb.ts", "service/main.ts", "serve"], {
      TILTYARD_PORT: "0",
      TILTYARD_DATA_DIR: dataDir,
      TILTYARD_LOG_LEVEL: "error",
    });
    try {
      const url = /http:\S+/.exec(await program.printed("Call the catalog"))?.[0];
      const headers = { "x-api-key": readFileSync(join(dataDir, "development.key"), "utf8") };
      const post = (path: string, body?: Uint8Array) =>
        fetch(`${url}/v1/table/films/${path}`, { method: "POST", headers, ...(body && { body }) });
      const refused = await post("create", arrowStream(films));
      expect([refused.status, await refused.json()]).toMatchObject([406, { code: 0 }]);
      expect((await post("declare")).status).toBe(200);
      expect((await post("exists")).status).toBe(200);
    } finally {
      program.child.kill("SIGTERM");
      await program.finished;
    }
  });
});
