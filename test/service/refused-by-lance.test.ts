/** A request that Lance's library rejects is an error of the caller, and the response reports it as such. */
import {
  type DataType,
  DateDay,
  Field,
  FixedSizeList,
  Float32,
  Int8,
  Int32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
  Uint8,
  vectorFromArray,
} from "apache-arrow";
import { beforeAll, describe, expect, test } from "vitest";
import { type OperationName, useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms, films } from "../support/rows.ts";

const catalog = useCatalog();
let id: string[] = [];
beforeAll(async () => {
  id = await createFilms(catalog);
  await catalog.call("alterTableAddColumns", { id, new_columns: [{ name: "n", expression: "cast(1 as bigint)" }] });
});

/** Returns an Arrow stream of numbers in columns with these names. */
function columns(...names: readonly string[]): Uint8Array {
  const fields = names.map((name) => new Field(name, new Int32(), true));
  const [numbers] = vectorFromArray([1, 2], new Int32()).data;
  const children = names.flatMap(() => numbers ?? []);
  const batch = new RecordBatch(new Schema(fields), makeData({ type: new Struct(fields), length: 2, children }));
  return tableToIPC(new Table(batch.schema, [batch]), "stream");
}

async function refusal(name: OperationName, request: Readonly<Record<string, unknown>>, body?: Uint8Array) {
  const { status, error } = await catalog.call(name, { id, ...request }, body === undefined ? {} : { body });
  expect([status, error.detail]).toEqual([400, expect.not.stringMatching(/\.rs|\/rustc|\/usr|Schema \{|lance error/)]);
  return error.detail;
}

/** The operations with an expression. Each of them reads or changes rows. */
const withExpression: readonly [OperationName, (sql: string) => Readonly<Record<string, unknown>>, Uint8Array?][] = [
  ["countTableRows", (predicate) => ({ predicate })],
  ["queryTable", (filter) => ({ k: 1, vector: {}, filter })],
  ["queryTable", (sql) => ({ k: 1, vector: {}, columns: { column_aliases: { alias: sql } } })],
  ["listTableRows", (filter) => ({ filter })],
  ["deleteFromTable", (predicate) => ({ predicate })],
  ["updateTable", (predicate) => ({ predicate, updates: [["n", "2"]] })],
  ["updateTable", (sql) => ({ updates: [["n", sql]] })],
  ["alterTableAddColumns", (expression) => ({ new_columns: [{ name: "added", expression }] })],
  ["alterTableAddColumns", (computed) => ({ new_columns: [{ name: "added", computed }] })],
  [
    "mergeInsertIntoTable",
    (sql) => ({ on: ["id"], when_matched_update_all: true, when_matched_update_all_filt: sql }),
    arrowStream(films),
  ],
  ["mergeInsertIntoTable", (sql) => ({ on: ["id"], when_not_matched_by_source_delete_filt: sql }), arrowStream(films)],
];

describe("an expression with a text after its end", () => {
  const unfinished = ["n = 1 n = 2", "n = 1 limit 1", "n = 1 where id", "n = 1; n = 2", "n = 1, n = 2", "n) or (n = 2"];

  test.each(withExpression)("is refused in %s (%s)", async (name, request, body) => {
    const versionOf = async () => (await catalog.call("listTableVersions", { id, descending: true })).body.versions[0];
    const before = await versionOf();
    for (const sql of unfinished) await refusal(name, request(sql), body);
    expect(await versionOf()).toEqual(before);
  });

  test("may end with a comment", async () => {
    const { body } = await catalog.call("countTableRows", { id, predicate: "n = 1 -- all of them" });
    expect(body).toBe(films.length);
  });
});

test("a long name that no column has is refused within two seconds", async () => {
  const name = "index ".repeat(40_000);
  const startedMs = performance.now();
  const { status, error } = await catalog.call("countTableRows", { id, predicate: `\`${name}\` = 1` });
  expect([status, error.detail.length]).toEqual([404, expect.toSatisfy((length: number) => length < 1_000)]);
  expect(performance.now() - startedMs).toBeLessThan(2_000);
});

describe("a value that does not fit its column", () => {
  const row = "n = 1";

  test.each([
    ["vec", "[5.0]"],
    ["vec", "[5.0, 6.0, 7.0]"],
    ["vec", "['x', '1']"],
    ["vec", "array_append(vec, 1)"],
    ["bytes", "[1, 300]"],
    ["days", "['x', '2026-11-27']"],
    ["days", "['2026-11-27']"],
    ["n", "'one'"],
    ["small", "300"],
  ])("rejects to update %s to %s, and keeps the value", async (column, value) => {
    const at = ["vectors"];
    const list = (length: number, item: DataType) => new FixedSizeList(length, new Field("item", item, true));
    const vectors = new Table({
      n: vectorFromArray([1], new Int32()),
      small: vectorFromArray([1], new Int8()),
      vec: vectorFromArray([[1, 2]], list(2, new Float32())),
      bytes: vectorFromArray([[1, 2]], list(2, new Uint8())),
      days: vectorFromArray([[0, 1]], list(2, new DateDay())),
    });
    await catalog.call("createTable", { id: at, mode: "overwrite" }, { body: tableToIPC(vectors, "stream") });
    await refusal("updateTable", { id: at, predicate: row, updates: [[column, value]] });
    const { body } = await catalog.call("countTableRows", { id: at, predicate: `${column} IS NULL` });
    expect(body).toBe(0);
    const valid = [
      ["vec", "[5, 6]"],
      ["bytes", "NULL"],
      ["days", "['2026-11-27', NULL]"],
    ];
    expect(await catalog.call("updateTable", { id: at, updates: valid })).toMatchObject({ status: 200 });
    const { rows } = (await catalog.call("listTableRows", { id: at })).body;
    expect(rows[0]).toMatchObject([
      { text: "1" },
      { text: "1" },
      { text: "[5.0, 6.0]" },
      null,
      { text: "[2026-11-27, ]" },
    ]);
  });
});

test("rejects to merge some columns into a table with more than 300, and merges all of them", async () => {
  const at = ["wide"];
  const names = Array.from({ length: 301 }, (_, index) => `c${index}`);
  const numbers = names.map((name) => [name, vectorFromArray([1, 2], new Int32())]);
  const body = tableToIPC(new Table(Object.fromEntries(numbers)), "stream");
  await catalog.call("createTable", { id: at }, { body });
  const merge = { id: at, on: ["c0"], when_matched_update_all: true };
  expect(await refusal("mergeInsertIntoTable", merge, columns("c0", "c1"))).toMatch(/^the rows have 2 of 301 columns/);
  const merged = await catalog.call("mergeInsertIntoTable", merge, { body });
  expect(merged.body).toMatchObject({ version: 2, num_updated_rows: 2 });
});

test("accepts a text of any length as a value, and no longer expression", async () => {
  const at = ["texts"];
  await catalog.call("createTable", { id: at }, { body: arrowStream(films.slice(0, 1)) });
  const update = (value: string) => catalog.call("updateTable", { id: at, updates: [["title", value]] });
  const title = `it''s ${"x".repeat(1_000_000)}`;
  expect(await update(`'${title}'`)).toMatchObject({ status: 200, body: { updated_rows: 1 } });
  const length = { id: at, predicate: `character_length(title) = ${title.length - 1}` };
  expect((await catalog.call("countTableRows", length)).body).toBe(1);
  expect((await update(`concat('${title}', 'y')`)).error).toMatchObject({
    status: 400,
    detail: "updates.0.1: must have at most 262144 characters, unless it is one text",
  });
});

test("rejects an expression of a type that Lance 12 cannot read, and accepts it without the colon", async () => {
  const at = ["zones"];
  await catalog.call("createTable", { id: at }, { body: arrowStream(films) });
  const add = (zone: string) => {
    const expression = `arrow_cast('2026-11-29', 'Timestamp(Microsecond, Some("${zone}"))')`;
    return catalog.call("alterTableAddColumns", { id: at, new_columns: [{ name: "seen", expression }] });
  };
  expect((await add("+05:30")).error).toMatchObject({
    status: 406,
    detail: expect.stringContaining("a type in the request"),
  });
  expect((await add("+0530")).body).toMatchObject({ version: 2 });
  const { body } = await catalog.call("describeTable", { id: at, load_detailed_metadata: true });
  expect(JSON.stringify(body.schema)).toContain("+05:30");
});

test("refuses the names of Lance's own indices before anything is committed", async () => {
  const versions = async () => (await catalog.call("listTableVersions", { id })).body.versions.length;
  const before = await versions();
  for (const name of ["__lance_frag_reuse", "__lance_mem_wal"])
    expect(await refusal("createTableIndex", { column: "n", index_type: "BTREE", name })).toMatch(/^name: begins with/);
  expect(await versions()).toBe(before);
});

describe("a request that Lance refuses", () => {
  test("is refused for columns with one name", async () => {
    const twice = 'Duplicate field name "a" in schema';
    expect(await refusal("createTable", { id: ["twice"] }, columns("a", "a"))).toBe(twice);
    expect(await refusal("insertIntoTable", { mode: "Overwrite" }, columns("a", "a"))).toBe(twice);
    const add = { name: "a", expression: "1" };
    expect(await refusal("alterTableAddColumns", { new_columns: [add, add] })).toBe(twice);
    const rename = { path: "title", rename: "n" };
    expect(await refusal("alterTableAlterColumns", { alterations: [rename] })).toBe(
      'Duplicate field name "n" in schema',
    );
    expect(
      await refusal("mergeInsertIntoTable", { on: ["n"], when_not_matched_insert_all: true }, columns("n", "n")),
    ).toBe('Duplicate field name "n" in schema');
  });

  test("is refused for a vector index of no rows", async () => {
    const at = ["vectorless"];
    const type = new FixedSizeList(2, new Field("item", new Float32(), true));
    const rows = new Table({ vec: vectorFromArray([[1, 2]], type) }).slice(0, 0);
    await catalog.call("createTable", { id: at }, { body: tableToIPC(rows, "stream") });
    expect(await refusal("createTableIndex", { id: at, column: "vec", index_type: "IVF_FLAT" })).toBe(
      "The column has no vectors yet. Add rows before its index.",
    );
  });

  test("is refused for a column with a dot in its name", async () => {
    const dotted = "Top level field a.b cannot contain `.`. Maybe you meant to create a struct field?";
    expect(await refusal("createTable", { id: ["dotted"] }, columns("a.b"))).toBe(dotted);
    expect(await refusal("alterTableAddColumns", { new_columns: [{ name: "a.b", expression: "1" }] })).toBe(dotted);
    expect(await refusal("alterTableAlterColumns", { alterations: [{ path: "title", rename: "a.b" }] })).toBe(dotted);
  });

  test("is refused for a column that Lance computes itself", async () => {
    const reserved = expect.stringContaining("must not be one of _rowid,");
    expect(await refusal("alterTableAddColumns", { new_columns: [{ name: "_rowid", expression: "1" }] })).toEqual(
      reserved,
    );
    expect(await refusal("alterTableAlterColumns", { alterations: [{ path: "title", rename: "_rowaddr" }] })).toEqual(
      reserved,
    );
  });

  test("is refused for a merge that would change nothing", async () => {
    expect(await refusal("mergeInsertIntoTable", { on: ["id"] }, arrowStream(films))).toMatch(
      /not configured to change/,
    );
  });

  test.each(["n / 0", "n % 0"])("is refused for %s", async (expression) => {
    const divided = expect.stringMatching(/Divide by zero error$/);
    expect(await refusal("alterTableAddColumns", { new_columns: [{ name: "m", expression }] })).toEqual(divided);
    expect(await refusal("updateTable", { updates: [["n", expression]] })).toEqual(divided);
    expect(await refusal("queryTable", { k: 1, filter: `${expression} = 1` })).toEqual(divided);
    expect(await refusal("countTableRows", { predicate: `${expression} = 1` })).toEqual(divided);
    expect(await refusal("deleteFromTable", { predicate: `${expression} = 1` })).toEqual(divided);
  });

  test.each(["n = ?", "n = $1", "n = :O", "timestamp $1"])("is refused for a placeholder: %s", async (expression) => {
    const placeholder = expect.stringContaining("A placeholder (?, $1 or :name) has no value");
    expect(await refusal("alterTableAddColumns", { new_columns: [{ name: "m", expression }] })).toEqual(placeholder);
    expect(await refusal("updateTable", { updates: [["n", expression]] })).toEqual(placeholder);
    expect(await refusal("queryTable", { k: 1, filter: expression })).toEqual(placeholder);
    expect(await refusal("countTableRows", { predicate: expression })).toEqual(placeholder);
    expect(await refusal("deleteFromTable", { predicate: expression })).toEqual(placeholder);
  });

  test("is refused for a field of a value without fields", async () => {
    expect(await refusal("queryTable", { k: 1, filter: "1.5 . like" })).toMatch(/Cannot access field/);
  });

  test("is refused for a plan of a column that cannot be searched", async () => {
    const query = { k: 1, full_text_query: { string_query: { query: "a" } } };
    expect(await refusal("explainTableQueryPlan", { query })).toMatch(/^Cannot perform full text search unless/);
  });
});

/** Each of these requests would crash the process or allocate gigabytes. */
describe("requests that would crash the library are refused before it:", () => {
  test.each([
    ["language", { language: "nope" }],
    ["language", { language: "" }],
    ["base_tokenizer", { base_tokenizer: "jieba/../../etc" }],
    ["m", { index_type: "IVF_HNSW_PQ", m: 4_000_000_000 }],
    ["ef_construction", { index_type: "IVF_HNSW_PQ", ef_construction: 4_000_000_000 }],
    ["num_partitions", { index_type: "IVF_PQ", num_partitions: 2 ** 52 }],
  ])("the %s of an index: %j", async (field, options) => {
    const request = { column: "title", index_type: "FTS", ...options };
    expect(await refusal("createTableIndex", request)).toMatch(new RegExp(`^${field}: `));
  });

  test("a language is known in any letter case", async () => {
    const request = { id, column: "title", index_type: "FTS", language: "english" };
    expect((await catalog.call("createTableIndex", request)).status).toBe(200);
  });

  test.each([{ k: 4_000_000_000 }, { k: 10, offset: 4_000_000_000 }, { k: 1_000, refine_factor: 65_536 }])(
    "the rows that a vector search finds: %j",
    async (query) => {
      const vector = { single_vector: [1, 2] };
      expect(await refusal("queryTable", { vector, ...query })).toMatch(
        /^k: a vector search finds at most 1000000 rows/,
      );
    },
  );

  test.each([{ ef: 2 ** 52 }, { nprobes: 2 ** 32 }])("the candidates of a vector search: %j", async (query) => {
    expect(await refusal("queryTable", { k: 1, vector: { single_vector: [1] }, ...query })).toContain(
      "must be at most",
    );
  });

  test.each([
    ["a chain of 1,000 terms", `n = ${Array(1_000).fill("1").join("+")}`, "operators in a chain"],
    ["casts in casts", `${"cast(".repeat(48)}n${" as int)".repeat(48)} = 1`, "nests deeper than 32 levels"],
    ["a repetition", "repeat('x', 2000000000) = title", "times as long"],
  ])("%s in any SQL expression", async (_, sql, problem) => {
    const refused = (field: string) => expect.stringMatching(new RegExp(`^${field}: .*${problem}`));
    expect(await refusal("countTableRows", { predicate: sql })).toEqual(refused("predicate"));
    expect(await refusal("queryTable", { k: 1, filter: sql })).toEqual(refused("filter"));
    expect(await refusal("queryTable", { k: 1, columns: { column_aliases: { a: sql } } })).toEqual(
      refused("columns.column_aliases.a"),
    );
    expect(await refusal("explainTableQueryPlan", { query: { k: 1, filter: sql } })).toEqual(refused("query.filter"));
    expect(await refusal("analyzeTableQueryPlan", { k: 1, filter: sql })).toEqual(refused("filter"));
    expect(await refusal("updateTable", { updates: [["n", sql]] })).toEqual(refused("updates.0.1"));
    expect(await refusal("deleteFromTable", { predicate: sql })).toEqual(refused("predicate"));
    const merge = { on: ["id"], when_not_matched_insert_all: true, when_matched_update_all_filt: sql };
    expect(await refusal("mergeInsertIntoTable", merge, arrowStream(films))).toEqual(
      refused("when_matched_update_all_filt"),
    );
    expect(await refusal("alterTableAddColumns", { new_columns: [{ name: "m", expression: sql }] })).toEqual(
      refused("new_columns.0.expression"),
    );
    expect(await refusal("alterTableBackfillColumns", { column: "n", where: sql })).toEqual(refused("where"));
  });

  test.each([
    ["1,000 values", `id IN (${Array.from({ length: 1_000 }, (_, id) => id).join()})`],
    ["1,000 alternatives", Array.from({ length: 1_000 }, (_, id) => `id = ${id}`).join(" OR ")],
    ["100 operators in a chain", `id = ${Array(100).fill("1").join("+")} OR true`],
    ["25 functions in each other", `${"abs(".repeat(25)}id${")".repeat(25)} > 0`],
    ["25 casts in each other", `${"cast(".repeat(25)}id${" as bigint)".repeat(25)} > 0`],
  ])("though Lance evaluates %s", async (_, predicate) => {
    expect((await catalog.call("countTableRows", { id, predicate })).body).toBe(3);
  });

  test("a predicate of more than 256 KiB, but shorter ones count and delete rows", async () => {
    const own = await createFilms(catalog);
    const predicate = `id = 2 AND title <> '${"x".repeat(256 * 1024 - 22)}'`;
    expect(await refusal("countTableRows", { id: own, predicate: `${predicate} ` })).toMatch(/^predicate: /);
    expect(await refusal("deleteFromTable", { id: own, predicate: `${predicate} ` })).toMatch(/^predicate: /);
    expect((await catalog.call("countTableRows", { id: own, predicate })).body).toBe(1);
    expect((await catalog.call("deleteFromTable", { id: own, predicate })).status).toBe(200);
    expect((await catalog.call("countTableRows", { id: own })).body).toBe(2);
  });

  test("a full-text query that nests deeper than any", async () => {
    const nested = (depth: number): object =>
      depth === 0
        ? { match: { terms: "a", column: "title" } }
        : { boost: { positive: nested(depth - 1), negative: {} } };
    const query = { structured_query: { query: nested(100) } };
    expect(await refusal("queryTable", { k: 1, full_text_query: query })).toBe("the body nests deeper than 128 levels");
  });
});
