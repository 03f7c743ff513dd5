/** The dialect of LanceDB's remote client where it differs from the protocol. */
import {
  Field,
  FixedSizeList,
  Float32,
  Float64,
  Int32,
  List,
  Schema,
  Table,
  TimestampMicrosecond,
  tableToIPC,
  vectorFromArray,
} from "apache-arrow";
import { describe, expect, test } from "vitest";
import { startTestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms, films, filmTable, readRows } from "../support/rows.ts";

const catalog = useCatalog();
const ofClient = { "x-lancedb-database": "films" };
const allRows = 2 ** 63;

/** A table of points on a line: the row of number n is n away from the first. */
async function createPoints(): Promise<string[]> {
  const id = [uniqueName("points")];
  const numbers = Array.from({ length: 10 }, (_, index) => index);
  const vector = vectorFromArray(
    numbers.map((number) => [number, 0]),
    new FixedSizeList(2, new Field("item", new Float32())),
  );
  const rows = new Table({ id: vectorFromArray(numbers, new Int32()), vector });
  await catalog.call("remoteCreateTable", { id }, { body: tableToIPC(rows, "stream") });
  return id;
}

async function query(id: readonly string[], request: object): Promise<Record<string, unknown>[]> {
  return readRows((await catalog.call("remoteQueryTable", { id, k: allRows, vector: [], ...request })).body);
}

describe("a table", () => {
  test("is described with the names that Lance has for its types", async () => {
    const id = [uniqueName("types")];
    const schema = new Schema([
      new Field("at", new TimestampMicrosecond("UTC"), true),
      new Field("vector", new FixedSizeList(2, new Field("item", new Float32(), true)), true),
    ]);
    await catalog.call("remoteCreateTable", { id }, { body: tableToIPC(new Table(schema), "stream") });
    expect((await catalog.call("remoteDescribeTable", { id, version: null })).body).toEqual({
      table: id[0],
      version: 1,
      location: expect.stringContaining("file:"),
      schema: {
        fields: [
          { name: "at", type: { type: "timestamp:us:UTC" }, nullable: true },
          {
            name: "vector",
            type: {
              type: "fixed_size_list",
              length: 2,
              fields: [{ name: "item", type: { type: "float" }, nullable: true }],
            },
            nullable: true,
          },
        ],
      },
    });
  });

  test("is 400 when it exists already, in the words that the client expects", async () => {
    const id = await createFilms(catalog);
    const again = await catalog.call("remoteCreateTable", { id, mode: "create" }, { body: arrowStream(films) });
    expect(again.error).toMatchObject({ status: 400, detail: expect.stringContaining("already exists") });
    const present = await catalog.call("remoteCreateTable", { id, mode: "exist_ok" }, { body: arrowStream([]) });
    expect(present.status).toBe(200);
  });

  test("is emptied by an overwrite without rows, and accepts other columns", async () => {
    const id = await createFilms(catalog);
    const schema = tableToIPC(new Table(new Schema([new Field("year", new Int32(), true)])), "stream");
    const emptied = await catalog.call("remoteCreateTable", { id, mode: "overwrite" }, { body: schema });
    expect(emptied.body.version).toBe(2);
    expect((await catalog.call("remoteCountTableRows", { id })).body).toBe(0);
    const { body } = await catalog.call("remoteDescribeTable", { id });
    expect(body.schema.fields.map(({ name }) => name)).toEqual(["year"]);
    expect((await catalog.call("countTableRows", { id, version: 1 })).body).toBe(films.length);
    // Local tables have a version for an insert without rows, too.
    const none = await catalog.call("remoteInsertIntoTable", { id }, { body: schema });
    expect(none.body).toMatchObject({ num_inserted_rows: 0, version: 3 });
  });

  test("is listed behind the name that stands for a page's token", async () => {
    const names = [uniqueName("listed"), uniqueName("listed")].toSorted();
    for (const name of names) await catalog.call("remoteCreateTable", { id: [name] }, { body: arrowStream(films) });
    const list = async (request: object) => (await catalog.call("remoteListTables", { ...request })).body.tables;
    expect(await list({})).toEqual(expect.arrayContaining(names));
    expect(await list({ page_token: names[0], limit: 1 })).toEqual([names[1]]);
  });

  test("moves to another namespace, and stays in its own when none is named", async () => {
    const id = await createFilms(catalog);
    const namespace = uniqueName("target");
    await catalog.call("createNamespace", { id: [namespace] });
    await catalog.call("remoteRenameTable", { id, new_table_name: "first" });
    const moved = { id: [id[0], "first"], new_table_name: "second", new_namespace: [namespace] };
    await catalog.call("remoteRenameTable", moved);
    expect((await catalog.call("countTableRows", { id: [namespace, "second"] })).body).toBe(films.length);
  });

  test("lists all its versions, and its tags by their names", async () => {
    const id = await createFilms(catalog);
    await catalog.call("remoteInsertIntoTable", { id }, { body: arrowStream(films) });
    await catalog.call("remoteCreateTableTag", { id, tag: "first", version: 1 });
    expect((await catalog.call("remoteListTableTags", { id })).body).toMatchObject({ first: { version: 1 } });
    await catalog.call("remoteCreateTableTag", { id, tag: "__proto__", version: 1 });
    const listed = await catalog.fetch(`/v1/table/${id.join("%24")}/tags/list/`, { method: "POST" });
    expect(await listed.text()).toContain('"__proto__"');
    const { versions } = (await catalog.call("remoteListTableVersions", { id })).body;
    expect(versions.map(({ version }) => version)).toEqual([1, 2]);
  });
});

describe("a change", () => {
  test("returns the number of affected rows in the client's fields", async () => {
    const id = await createFilms(catalog);
    const body = tableToIPC(filmTable([...films.slice(1), { id: 4, title: "Nostalghia" }]), "stream");
    const merge = { id, on: ["id"], when_matched_update_all: true, when_not_matched_insert_all: true };
    expect((await catalog.call("remoteMergeInsertIntoTable", merge, { body })).body).toMatchObject({
      num_updated_rows: 2,
      num_inserted_rows: 1,
      num_attempts: 1,
      num_rows: 3,
    });
    const update = { id, predicate: null, updates: [["title", "upper(title)"]] };
    expect((await catalog.call("remoteUpdateTable", update)).body).toEqual({ rows_updated: 4, version: 3 });
    const deleted = await catalog.call("remoteDeleteFromTable", { id, predicate: "id > 2" });
    expect(deleted.body).toEqual({ num_deleted_rows: 2, version: 4 });
  });

  test("adds columns of an Arrow schema, and columns of expressions", async () => {
    const id = await createFilms(catalog);
    const schema = tableToIPC(new Table(new Schema([new Field("year", new Int32(), true)])), "stream");
    const headers = { "content-type": "application/vnd.apache.arrow.stream" };
    expect((await catalog.call("remoteAlterTableAddColumns", { id }, { body: schema, headers })).body.version).toBe(2);
    await catalog.call("remoteAlterTableAddColumns", { id, new_columns: [{ name: "twice", expression: "id * 2" }] });
    expect(await query(id, { filter: "id = 1" })).toEqual([{ id: 1, title: "Stalker", year: null, twice: 2 }]);
    expect((await catalog.call("remoteAlterTableAddColumns", { id })).error.status).toBe(400);
  });

  test("changes a column to a type in Lance's words, a vector's too", async () => {
    const id = await createPoints();
    const half = { name: "item", nullable: true, type: { type: "halffloat" } };
    const data_type = { type: "fixed_size_list", length: 2, fields: [half] };
    await catalog.call("remoteAlterTableAlterColumns", { id, alterations: [{ path: "vector", data_type }] });
    const { schema } = (await catalog.call("remoteDescribeTable", { id })).body;
    expect(schema.fields[1]?.type.fields?.[0]?.type).toEqual({ type: "halffloat" });
  });

  test("changes a list to another list type", async () => {
    const id = [uniqueName("lists")];
    const lists = new Table({ numbers: vectorFromArray([[1, 2]], new List(new Field("item", new Float64(), true))) });
    await catalog.call("createTable", { id }, { body: tableToIPC(lists, "stream") });
    const item = { name: "item", nullable: true, type: { type: "float32" } };
    for (const type of ["list", "large_list"]) {
      const alterations = [{ path: "numbers", data_type: { type, fields: [item] } }];
      expect((await catalog.call("alterTableAlterColumns", { id, alterations })).status).toBe(200);
      const { schema } = (await catalog.call("describeTable", { id, load_detailed_metadata: true })).body;
      expect(schema?.fields[0]?.type).toMatchObject({ type, fields: [{ type: { type: "float32" } }] });
    }
    expect((await catalog.call("countTableRows", { id, predicate: "array_length(numbers) = 2" })).body).toBe(1);
  });

  test("is refused by 400 where the client would take 404 or 409 for something else", async () => {
    const id = await createFilms(catalog);
    await catalog.call("remoteCreateTableTag", { id, tag: "v", version: 1 });
    const tagged = await catalog.call("remoteCreateTableTag", { id, tag: "v", version: 1 });
    const dropped = await catalog.call("remoteAlterTableDropColumns", { id, columns: ["missing"] });
    const read = await catalog.call("remoteQueryTable", { id, k: 1, filter: "missing > 1" });
    expect([tagged, dropped, read].map(({ error }) => error.status)).toEqual([400, 400, 400]);
    expect((await catalog.call("remoteDropTableIndex", { id, indexName: "missing" })).error.status).toBe(404);
  });

  test("answers 400 to the client and 409 to others when a job of the column is open", async () => {
    const id = await createFilms(catalog);
    await catalog.call("remoteAlterTableAddColumns", { id, new_columns: [{ name: "twice", computed: "id * 2" }] });
    expect((await catalog.call("alterTableBackfillColumns", { id, column: "twice" })).status).toBe(202);
    const other = { id, column: "twice", concurrency: 3 };
    const refused = await catalog.call("alterTableBackfillColumns", other, { headers: ofClient });
    expect(refused.error).toMatchObject({ status: 400, detail: expect.stringContaining("has the open job") });
    expect((await catalog.call("alterTableBackfillColumns", other)).error).toMatchObject({ status: 409, code: 19 });
  });
});

describe("a query", () => {
  test("answers all rows where k is 2^63-1", async () => {
    const id = await createPoints();
    expect(await query(id, {})).toHaveLength(10);
    expect(await query(id, { vector: [3, 0] })).toHaveLength(10);
    expect((await catalog.call("remoteQueryTable", { id, k: 1.5 })).error.status).toBe(400);
  });

  test("selects columns by a list, or by an expression for each", async () => {
    const id = await createPoints();
    expect(await query(id, { filter: "id > 7", columns: ["id"] })).toEqual([{ id: 8 }, { id: 9 }]);
    expect(await query(id, { filter: "id > 8", columns: { twice: "id * 2" } })).toEqual([{ twice: 18 }]);
  });

  test("orders its rows", async () => {
    const order_by = [{ column_name: "id", ascending: false, nulls_first: true }];
    expect((await query(await createPoints(), { k: 3, order_by })).map(({ id }) => id)).toEqual([9, 8, 7]);
  });

  test("searches by one vector, and by each of several", async () => {
    const id = await createPoints();
    const probes = { nprobes: 20, minimum_nprobes: 20, maximum_nprobes: 20, ef: null, refine_factor: null };
    const found = await query(id, { k: 2, vector: [7.2, 0], ...probes });
    expect(found.map((row) => row.id)).toEqual([7, 8]);
    const batch = [
      [0, 0],
      [9, 0],
    ];
    const each = await query(id, { k: 1, vector: batch });
    expect(each.map((row) => [row.query_index, row.id])).toEqual([
      [0, 0],
      [1, 9],
    ]);
  });

  test("searches text in all the ways that the client has", async () => {
    const id = await createFilms(catalog, [
      { id: 1, title: "the quick dog" },
      { id: 2, title: "the dog quick" },
      { id: 3, title: "a cat" },
    ]);
    await catalog.call("remoteCreateTableIndex", {
      id,
      column: "title",
      index_type: "FTS",
      with_position: true,
      remove_stop_words: false,
      custom_stop_words: null,
    });
    const find = async (full_text_query: object) =>
      (await query(id, { k: 10, full_text_query })).map((row) => row.id).toSorted();
    const match = (terms: string, column: string | null = "title") => ({ match: { terms, column, operator: "Or" } });
    expect(await find({ query: "cat", columns: ["title"] })).toEqual([3]);
    expect(await find({ query: match("dog", null) })).toEqual([1, 2]);
    expect(await find({ query: { phrase: { terms: "quick dog", column: "title" } } })).toEqual([1]);
    expect(await find({ query: { multi_match: { query: "cat", columns: ["title"], boost: [2] } } })).toEqual([3]);
    const both = { query: "quick cat", columns: ["title"] };
    expect(await find({ query: { multi_match: both } })).toEqual([1, 2, 3]);
    expect(await find({ query: { multi_match: { ...both, operator: "AND" } } })).toEqual([]);
    const boolean = { must: [match("dog")], must_not: [match("cat")], should: [] };
    expect(await find({ query: { boolean } })).toEqual([1, 2]);
    const boost = { positive: match("quick"), negative: match("cat"), negative_boost: 0.5 };
    expect(await find({ query: { boost } })).toEqual([1, 2]);
  });

  test("is explained, and analyzed", async () => {
    const id = await createPoints();
    const search = { k: 1, vector: [1, 0], columns: ["id"] };
    expect((await catalog.call("remoteExplainTableQueryPlan", { id, query: search })).body).toContain("KNN");
    expect((await catalog.call("remoteAnalyzeTableQueryPlan", { id, ...search })).body).toContain("elapsed");
  });
});

test("an index accepts the client's name of a distance, and may be read into the cache", async () => {
  const id = await createPoints();
  const index = { index_type: "IVF_FLAT", metric_type: "cosine", num_partitions: 1 };
  await catalog.call("remoteCreateTableIndex", { id, column: "vector", ...index });
  const indexName = "vector_idx";
  expect((await catalog.call("remoteDescribeTableIndexStats", { id, indexName })).body.distance_type).toBe("cosine");
  expect((await catalog.call("prewarmTableIndex", { id, indexName })).status).toBe(200);
  expect((await catalog.call("prewarmTableIndex", { id, indexName: "missing" })).error.code).toBe(6);
  expect((await catalog.call("prewarmTableData", { id, columns: ["id"] })).status).toBe(200);
  expect((await catalog.call("prewarmTableData", { id: ["missing"] })).error.status).toBe(404);
});

test("LSM writes are off under their names in lancedb 0.40 and in 0.41", async () => {
  const id = await createPoints();
  expect((await catalog.call("getLsmWriteSpec", { id })).body).toEqual({ lsm_write_spec: null });
  expect((await catalog.call("getLsmStats", { id })).body).toEqual({ lsm_stats: null });
  expect((await catalog.call("getRteSpec", { id })).body).toEqual({ rte_spec: null });
  const stats = await catalog.call("getRteStats", { id, include_sstable_rows: true });
  expect([stats.body, stats.headers.get("x-ignored-fields")]).toEqual([{ rte_stats: null }, null]);
  const merge = { id, on: ["id"], when_matched_update_all: true };
  for (const name of ["use_lsm", "use_rte"]) {
    expect((await catalog.call("remoteQueryTable", { id, k: 1, vector: [], [name]: false })).status).toBe(200);
    const on = { [name]: true };
    for (const answer of [
      await catalog.call("remoteQueryTable", { id, k: 1, vector: [], ...on }),
      await catalog.call("remoteMergeInsertIntoTable", { ...merge, ...on }, { body: arrowStream(films) }),
    ])
      expect(answer.error).toMatchObject({ status: 400, detail: expect.stringContaining(`${name}: must be false`) });
  }
});

describe("LanceDB's client", () => {
  test("receives the version of its server, unlike other clients", async () => {
    const list = (headers: Record<string, string>) =>
      catalog.fetch("/v1/namespace/$/table/list", { headers: { "x-api-key": catalog.adminKey, ...headers } });
    expect((await list(ofClient)).headers.get("phalanx-version")).toBe("0.3.0");
    expect((await list({})).headers.get("phalanx-version")).toBeNull();
  });

  test("receives 406 for unsupported operations, and other clients 404", async () => {
    const send = async (headers: Record<string, string>) =>
      (await catalog.fetch("/v1/table/t/branches/diff/", { method: "POST", headers })).status;
    expect([await send(ofClient), await send({})]).toEqual([406, 404]);
  });

  test("is in the root, whatever database it names", async () => {
    const id = [uniqueName("t")];
    const { headers } = await catalog.call(
      "remoteCreateTable",
      { id },
      { body: arrowStream(films), headers: ofClient },
    );
    expect(headers.get("phalanx-version")).toBe("0.3.0");
    expect((await catalog.call("countTableRows", { id })).body).toBe(films.length);
  });

  test("creates, lists and drops no databases, which would share the tables of the root", async () => {
    const headers = { "user-agent": "LanceDB-Python-Client/0.40.0" };
    const unsupported = { status: 406, detail: expect.stringContaining("TILTYARD_REMOTE_DATABASES=on") };
    const id = [uniqueName("database")];
    expect((await catalog.call("createNamespace", { id }, { headers })).error).toMatchObject(unsupported);
    expect((await catalog.call("listNamespaces", {}, { headers })).error).toMatchObject(unsupported);
    expect((await catalog.call("createNamespace", { id }, { headers: { ...headers, ...ofClient } })).status).toBe(200);
    expect((await catalog.call("dropNamespace", { id }, { headers })).error).toMatchObject(unsupported);
  });
});

test("a database is a namespace that its client does not leave, with TILTYARD_REMOTE_DATABASES", async () => {
  await using own = Object.assign(await startTestCatalog({ TILTYARD_REMOTE_DATABASES: "on" }), {
    [Symbol.asyncDispose]: () => own.stop(),
  });
  for (const id of [["films"], ["films", "old"]]) await own.call("createNamespace", { id });
  const root = { "user-agent": "LanceDB-Python-Client/0.40.0" };
  expect((await own.call("listNamespaces", {}, { headers: root })).body.namespaces).toEqual(["films"]);
  const create = (id: string[], headers: Record<string, string>) =>
    own.call("remoteCreateTable", { id }, { body: arrowStream(films), headers });
  await create(["t"], ofClient);
  await create(["u"], { ...ofClient, "x-lancedb-database-prefix": "old" });
  expect((await own.call("countTableRows", { id: ["films", "t"] })).body).toBe(films.length);
  expect((await own.call("countTableRows", { id: ["films", "old", "u"] })).body).toBe(films.length);
  expect((await own.call("remoteListTables", {}, { headers: ofClient })).body.tables).toEqual(["t"]);
  expect((await own.call("listNamespaces", {}, { headers: ofClient })).body.namespaces).toEqual(["old"]);
  const moved = { id: ["t"], new_table_name: "t", new_namespace: ["old"] };
  await own.call("remoteRenameTable", moved, { headers: ofClient });
  expect((await own.call("countTableRows", { id: ["films", "old", "t"] })).body).toBe(films.length);
  // Geneva's client calls the operation of the protocol.
  const movedByGeneva = { id: ["old", "t"], new_table_name: "v", new_namespace_id: ["old"] };
  await own.call("renameTable", movedByGeneva, { headers: ofClient });
  expect((await own.call("countTableRows", { id: ["films", "old", "v"] })).body).toBe(films.length);
  const writer = { key: await own.keyFor("writer", { films: "writer" }), headers: ofClient };
  const operations = [{ declare_table: { id: ["batched"] } }];
  expect((await own.call("batchCommitTables", { operations }, writer)).status).toBe(200);
  expect((await own.call("describeTable", { id: ["films", "batched"] })).status).toBe(200);
  const entries = [{ id: ["batched"], version: 1, manifest_path: "elsewhere" }];
  expect((await own.call("batchCreateTableVersions", { entries }, writer)).error).toMatchObject({
    status: 400,
    detail: expect.stringContaining("warehouse/films/batched-"),
  });

  const key = await own.keyFor("stranger", { t: "admin", old: "admin" });
  const refused = await own.call("remoteCountTableRows", { id: ["old", "v"] }, { headers: ofClient, key });
  expect(refused.error.status).toBe(403);
  const broken = { headers: { "x-lancedb-database": "a".repeat(300) } };
  expect((await own.call("remoteListTables", {}, broken)).error.status).toBe(400);
});
