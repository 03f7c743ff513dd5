import { shown } from "@tiltyard/protocol";
import {
  Binary,
  Bool,
  type DataType,
  DateDay,
  Decimal,
  Dictionary,
  DurationSecond,
  Field,
  FixedSizeList,
  Float32,
  Int32,
  Int64,
  List,
  Schema,
  Struct,
  Table,
  TimeNanosecond,
  Timestamp,
  TimeUnit,
  tableToIPC,
  Utf8,
  type Vector,
  vectorFromArray,
} from "apache-arrow";
import { describe, expect, test } from "vitest";
import { commit, declareTable, stageManifest, startTestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();

const png = Buffer.from("89504e470d0a1a0a", "hex");
const jpeg = Buffer.from("ffd8ffe0", "hex");
/** Returns bytes with the header of an image. */
const bytesOf = (length: number, head = png) => Buffer.concat([head, Buffer.alloc(length - head.length, 7)]);
const item = (type: DataType) => new Field("item", type, true);
const tagged = new Struct([new Field("name", new Utf8(), true), new Field("tags", new List(item(new Utf8())), true)]);
const texts = (values: readonly (string | null)[]) => vectorFromArray(values, new Utf8());

async function createTable(columns: Readonly<Record<string, Vector>> | Table): Promise<string[]> {
  const rows = columns instanceof Table ? columns : new Table(columns);
  const id = [uniqueName("ns"), "t"];
  await catalog.call("createNamespace", { id: id.slice(0, 1) });
  await catalog.call("createTable", { id }, { body: tableToIPC(rows, "stream") });
  return id;
}

async function firstRows(columns: Readonly<Record<string, Vector>> | Table, request: object = {}) {
  return (await catalog.call("listTableRows", { id: await createTable(columns), ...request })).body;
}

test("lists rows by their distance to the vector of an example", async () => {
  const vectors = [
    [0, 0],
    [9, 9],
    [1, 0],
    [3, 3],
  ];
  const embedding = vectorFromArray(vectors, new FixedSizeList(2, item(new Float32())));
  const id = await createTable({
    n: vectorFromArray([10, 20, 30, 40], new Int32()),
    embedding,
    t: texts(["a", "b", "c", null]),
  });
  const list = async (request: object) => {
    const { body } = await catalog.call("listTableRows", { id, like: "embedding", columns: ["n"], ...request });
    return body.rows.map((row) => row.map((value) => value?.text));
  };
  expect(await list({ like_row: 1 })).toEqual([["20"], ["40"], ["30"], ["10"]]);
  expect(await list({ filter: "n > 10", sort: "n", descending: true, like_row: 1, limit: 2 })).toEqual([
    ["30"],
    ["40"],
  ]);
  expect(await list({ like_row: 1, offset: 3 })).toEqual([["10"]]);
  const { distances } = (await catalog.call("listTableRows", { id, like: "embedding", like_row: 1, limit: 2 })).body;
  expect(distances).toEqual([0, 72]);
  const refused = [
    [{ like_row: 4 }, 400],
    [{ like: "t" }, 400],
    [{ offset: 1_000_000 }, 400],
    [{ like: "missing" }, 404],
  ] as const;
  for (const [request, status] of refused)
    expect((await catalog.call("listTableRows", { id, like: "embedding", ...request })).status).toBe(status);
});

test("lists the rows of a version by filter, order, page and column, and one whole value", async () => {
  const id = await createTable({
    n: vectorFromArray([1, 2, 3, 4], new Int32()),
    t: texts(["a", "b", "c", "d".repeat(5000)]),
  });
  await catalog.call("deleteFromTable", { id, predicate: "n = 1" });
  const list = async (request: object) => {
    const { status, body } = await catalog.call("listTableRows", { id, ...request });
    return [status, body.version, body.rows?.map((row) => row.map((value) => value?.text))];
  };
  const order = { sort: "n", descending: true, columns: ["n"] };
  expect(await list({ ...order, limit: 2, offset: 1 })).toEqual([200, 2, [["3"], ["2"]]]);
  expect(await list({ ...order, version: 1, filter: "n < 3" })).toEqual([200, 1, [["2"], ["1"]]]);
  expect(await list({ offset: 2 ** 32 })).toEqual([200, 2, []]);
  expect(await list({ columns: ["t"], filter: "n = 4", whole: true })).toEqual([200, 2, [["d".repeat(5000)]]]);
  const statusOf = async (request: object) => (await catalog.call("listTableRows", { id, ...request })).status;
  expect(await Promise.all([{ version: 9 }, { filter: "n >" }, { sort: "missing" }].map(statusOf))).toEqual([
    404, 400, 404,
  ]);
});

test("lists the versions with the operation and the principal of each commit", async () => {
  const id = await createTable({ n: vectorFromArray([1, 2], new Int32()) });
  const key = await catalog.keyFor("loader", { [id[0] ?? ""]: "writer" });
  await catalog.call("deleteFromTable", { id, predicate: "n = 1" }, { key });
  const { versions, page_token } = (await catalog.call("listTableHistory", { id, limit: 1 })).body;
  expect(versions).toMatchObject([{ version: 2, operation: "DeleteFromTable", principal: "loader" }]);
  const { transaction_id: transaction = "" } = versions[0] ?? {};
  expect((await catalog.call("describeTransaction", { id: transaction.split("$") })).body.status).toBe("Succeeded");
  const rest = (await catalog.call("listTableHistory", { id, page_token })).body.versions;
  expect(rest).toMatchObject([{ version: 1, operation: "CreateTable", principal: "bootstrap" }]);
  expect((await catalog.call("listTableHistory", { id, branch: "missing" })).status).toBe(404);
});

test("lists the principal of a commit to tables of several namespaces, and of one before the table was moved", async () => {
  const [one, two] = [await declareTable(catalog), await declareTable(catalog)];
  const [from = "", to = ""] = [one.id[0], two.id[0]];
  const key = await catalog.keyFor("loader", { [from]: "writer", [to]: "writer" });
  const entries = [one, two].map((table) => ({ id: table.id, version: 1, manifest_path: stageManifest(table, 1) }));
  const batch = (await catalog.call("batchCreateTableVersions", { entries }, { key })).body.transaction_id;
  const { transaction_id: second } = (await commit(catalog, one, 2)).body;
  const id = [to, "moved"];
  await catalog.call("renameTable", { id: one.id, new_namespace_id: [to], new_table_name: "moved" });
  const list = async (options: { readonly key?: string }) =>
    (await catalog.call("listTableHistory", { id }, options)).body.versions.map(
      ({ operation, principal, transaction_id }) => [operation, principal, transaction_id],
    );
  expect(await list({})).toEqual([
    ["CreateTableVersion", "bootstrap", second],
    ["BatchCreateTableVersions", "loader", batch],
  ]);
  // A reader of the namespace learns neither the former one nor that of the other table.
  expect(await list({ key: await catalog.keyFor(uniqueName("reader"), { [to]: "reader" }) })).toEqual([
    ["CreateTableVersion", "bootstrap", undefined],
    ["BatchCreateTableVersions", "loader", undefined],
  ]);
});

test("lists Lance's operation and the number of rows of each version", async () => {
  const id = await createTable({ n: vectorFromArray([1, 2, 3], new Int32()) });
  const more = tableToIPC(new Table({ n: vectorFromArray([4], new Int32()) }), "stream");
  await catalog.call("insertIntoTable", { id }, { body: more });
  await catalog.call("deleteFromTable", { id, predicate: "n < 3" });
  await catalog.call("updateTable", { id, updates: [["n", "n + 1"]] });
  await catalog.call("createTableScalarIndex", { id, column: "n", index_type: "BTREE" });
  await catalog.call("alterTableAddColumns", { id, new_columns: [{ name: "m", expression: "n + 1" }] });
  await catalog.call("restoreTable", { id, version: 2 });
  const { versions } = (await catalog.call("listTableHistory", { id })).body;
  expect(versions.map(({ lance_operation, num_rows }) => [lance_operation, num_rows])).toEqual([
    ["Restore", 4],
    ["Merge", 2],
    ["CreateIndex", 2],
    ["Update", 2],
    ["Delete", 2],
    ["Append", 4],
    ["Overwrite", 3],
  ]);
});

test("lists neither for a manifest that does not have them", async () => {
  const table = await declareTable(catalog);
  await commit(catalog, table, 1);
  const [version] = (await catalog.call("listTableHistory", { id: table.id })).body.versions;
  expect(Object.keys(version ?? {})).not.toEqual(expect.arrayContaining(["lance_operation", "num_rows"]));
});

describe("the first rows of a table", () => {
  test.each([
    ["integers exactly", vectorFromArray([2n ** 60n], new Int64()), { text: "1152921504606846976" }],
    ["numbers as short as they are", vectorFromArray([0.1], new Float32()), { text: "0.1" }],
    ["booleans", vectorFromArray([false], new Bool()), { text: "false" }],
    ["nothing", texts([null]), null],
    ["dates", vectorFromArray([new Date("2026-11-22")], new DateDay()), { text: "2026-11-22" }],
    [
      "times",
      vectorFromArray([Date.parse("2026-11-22T12:00:00.123Z")], new Timestamp(TimeUnit.MILLISECOND, "UTC")),
      { text: "2026-11-22T12:00:00.123Z" },
    ],
    ["decimals", vectorFromArray([new Uint32Array([12345, 0, 0, 0])], new Decimal(2, 10, 128)), { text: "123.45" }],
    ["dictionaries", vectorFromArray(["a"], new Dictionary(new Utf8(), new Int32())), { text: "a" }],
    ["short texts whole", texts(["né"]), { text: "né" }],
    [
      "long texts cut",
      texts(["né".repeat(500)]),
      { text: "né".repeat(shown.characters / 2), length: 1000, unit: "characters" },
    ],
    ["short lists whole", vectorFromArray([["a", "b"]], new List(item(new Utf8()))), { text: "[a, b]" }],
    [
      "vectors by their first items",
      vectorFromArray([Array.from({ length: 768 }, () => 0.5)], new FixedSizeList(768, item(new Float32()))),
      { text: `[${Array.from({ length: shown.items }, () => "0.5").join(", ")}]`, length: 768, unit: "items" },
    ],
    [
      "lists of vectors",
      vectorFromArray(
        [
          [
            [1, 2.5],
            [3, 4],
          ],
        ],
        new List(item(new List(item(new Float32())))),
      ),
      { text: "[[1,2.5],[3,4]]" },
    ],
    [
      "lists of structs",
      vectorFromArray([[{ x: 1 }]], new List(item(new Struct([new Field("x", new Int32(), true)])))),
      { text: '[{"x":1}]' },
    ],
    [
      "structs",
      vectorFromArray(
        [{ x: 1, in: { y: "z" } }],
        new Struct([
          new Field("x", new Int32(), true),
          new Field("in", new Struct([new Field("y", new Utf8(), true)]), true),
        ]),
      ),
      { text: "{x: 1, in: {y: z}}" },
    ],
    [
      "bytes by how they begin",
      vectorFromArray([Buffer.from("hi")], new Binary()),
      { text: "68 69", length: 2, unit: "bytes" },
    ],
    [
      "long bytes by how they begin",
      vectorFromArray([Buffer.alloc(1001, 255)], new Binary()),
      { text: Array.from({ length: shown.bytes }, () => "ff").join(" "), length: 1001, unit: "bytes" },
    ],
  ])("are %s", async (_, values, expected) => {
    expect((await firstRows({ values })).rows).toEqual([[expected]]);
  });

  test("are JSON as its text, also in structs", async () => {
    const json = (name: string) => new Field(name, new Utf8(), true, new Map([["ARROW:extension:name", "arrow.json"]]));
    const inside = new Struct([json("inner"), new Field("n", new Int32(), true)]);
    const values = ['{"a":[1,"é"]}', null, `"${"x".repeat(shown.characters)}"`];
    const columns = {
      json: texts(values),
      inside: vectorFromArray(
        values.map((inner, n) => ({ inner, n })),
        inside,
      ),
    };
    const schema = new Schema([json("json"), new Field("inside", inside, true)]);
    const { rows } = await firstRows(new Table(schema, columns));
    const [first, second, third] = rows;
    expect(first).toEqual([{ text: '{"a":[1,"é"]}' }, { text: '{inner: {"a":[1,"é"]}, n: 0}' }]);
    expect(second).toEqual([null, { text: "{inner: null, n: 1}" }]);
    expect(third?.[0]).toMatchObject({ length: shown.characters + 2, unit: "characters" });
  });

  test.each([
    ["decimal128(10, 2)", vectorFromArray([new Uint32Array([12345, 0, 0, 0])], new Decimal(2, 10, 128))],
    ["timestamp[ms, tz=UTC]", vectorFromArray([0], new Timestamp(TimeUnit.MILLISECOND, "UTC"))],
    ["timestamp[us]", vectorFromArray([0], new Timestamp(TimeUnit.MICROSECOND))],
    ["time64[ns]", vectorFromArray([0n], new TimeNanosecond())],
    ["duration[s]", vectorFromArray([0n], new DurationSecond())],
    ["fixed_size_list<float32, 2>", vectorFromArray([[0, 1]], new FixedSizeList(2, item(new Float32())))],
    ["struct<name: utf8, tags: list<utf8>>", vectorFromArray([{ name: "a", tags: ["b"] }], tagged)],
  ])("have columns with the type %s", async (type, values) => {
    const id = await createTable({ values });
    expect((await catalog.call("listTableRows", { id })).body.columns).toMatchObject([{ type }]);
  });

  test("have images whole, up to a size, and those of structs", async () => {
    const images = [bytesOf(1000), bytesOf(1001, jpeg), bytesOf(shown.imageBytes), bytesOf(shown.imageBytes + 1)];
    const struct = new Struct([new Field("bytes", new Binary(), true), new Field("path", new Utf8(), true)]);
    const id = await createTable({
      plain: vectorFromArray(images, new Binary()),
      inside: vectorFromArray(
        images.map((bytes) => ({ bytes, path: "a" })),
        struct,
      ),
    });
    const { rows } = (await catalog.call("listTableRows", { id })).body;
    const imageOf = (bytes: Buffer, media_type: string) => ({
      media_type,
      base64: bytes.toString("base64").replaceAll("=", ""),
    });
    const [first, second, third] = [
      imageOf(images[0] ?? png, "image/png"),
      imageOf(images[1] ?? png, "image/jpeg"),
      imageOf(images[2] ?? png, "image/png"),
    ];
    expect(rows[0]?.[0]).toEqual({ text: "PNG image", length: 1000, unit: "bytes", image: first });
    expect(rows[1]?.[0]).toEqual({ text: "JPEG image", length: 1001, unit: "bytes", image: second });
    // It exceeds the rest of the response.
    expect(rows[2]?.[0]).toEqual({ text: "PNG image", length: shown.imageBytes, unit: "bytes" });
    const alone = (await catalog.call("listTableRows", { id, columns: ["plain"], offset: 2, limit: 1 })).body;
    expect(alone.rows[0]?.[0]?.image).toEqual(third);
    expect(rows[3]?.[0]).toEqual({ text: "PNG image", length: shown.imageBytes + 1, unit: "bytes" });
    expect(rows[0]?.[1]).toEqual({ text: "{bytes: PNG image, path: a}", image: first });
  });

  test("are so many as are asked for, up to a limit", async () => {
    const id = await createTable({
      n: vectorFromArray(
        Array.from({ length: 150 }, (_, index) => index),
        new Int32(),
      ),
    });
    const told = async (request: object) =>
      (await catalog.call("listTableRows", { id, ...request })).body.rows.map(([value]) => Number(value?.text));
    expect(await told({})).toEqual(Array.from({ length: 20 }, (_, index) => index));
    expect(await told({ limit: 3 })).toEqual([0, 1, 2]);
    expect(await told({ limit: 1_000_000 })).toHaveLength(shown.rows);
    expect((await catalog.call("listTableRows", { id, limit: 0 })).status).toBe(400);
  });

  test("have the first columns, in order, and their total number", async () => {
    const values = vectorFromArray([1], new Int32());
    const names = Array.from({ length: shown.columns + 5 }, (_, index) => `Column ${index}`);
    const { columns, columns_in_all, rows } = await firstRows(Object.fromEntries(names.map((name) => [name, values])));
    expect(columns).toEqual(names.slice(0, shown.columns).map((name) => ({ name, type: "int32", is_shown: true })));
    expect(columns_in_all).toBe(names.length);
    expect(rows[0]).toHaveLength(shown.columns);
  });

  test("hold no more images than fit into an answer", async () => {
    const images = Array.from({ length: 20 }, () => bytesOf(shown.imageBytes));
    const { rows } = await firstRows({
      image: vectorFromArray(images, new Binary()),
      n: vectorFromArray(
        images.map((_, n) => n),
        new Int32(),
      ),
    });
    const shownImages = rows.filter(([value]) => value?.image !== undefined);
    expect(shownImages.length).toBe(Math.floor(shown.answerBytes / (Math.ceil(shown.imageBytes / 3) * 4)));
    expect(rows[19]).toEqual([{ text: "PNG image", length: shown.imageBytes, unit: "bytes" }, { text: "19" }]);
  });

  test("are as many as fit into 200 KiB, with the offset of the next one, and whole values are cut to it", async () => {
    const controls = "\u0001".repeat(shown.characters);
    const wide = Object.fromEntries(
      Array.from({ length: shown.columns }, (_, index) => [
        `c${index}`,
        vectorFromArray(
          Array.from({ length: 5 }, () => controls.repeat(200)),
          new Utf8(),
        ),
      ]),
    );
    const id = await createTable(wide);
    const list = async (request: object) => {
      const response = (await catalog.call("listTableRows", { id, ...request })).body;
      expect(Buffer.byteLength(JSON.stringify(response))).toBeLessThan(200 * 1024);
      return response;
    };
    const { rows, next_offset } = await list({});
    expect([rows.length, next_offset]).toEqual([1, 1]);
    expect((await list({ offset: 4 })).next_offset).toBeUndefined();
    const whole = (await list({ columns: ["c0"], whole: true })).rows[0]?.[0];
    expect(whole).toMatchObject({ length: controls.length * 200, unit: "characters" });
    expect(whole?.text.length).toBeGreaterThan(30_000);
  });

  test("cut what a struct has in all, however many fields are in it", async () => {
    const leaf = (index: number) => new Field(`field_${index}`, new Utf8(), true);
    const wide = new Struct(Array.from({ length: 100 }, (_, index) => leaf(index)));
    const value = Object.fromEntries(wide.children.map(({ name }) => [name, "x".repeat(1000)]));
    const { rows } = await firstRows({ wide: vectorFromArray([value], wide) });
    expect(rows[0]?.[0]?.text).toHaveLength(shown.characters);
  });

  test("are those of the latest version, with its number", async () => {
    const id = await createTable({ n: vectorFromArray([1, 2], new Int32()) });
    await catalog.call("deleteFromTable", { id, predicate: "n = 1" });
    expect((await catalog.call("listTableRows", { id })).body).toMatchObject({ version: 2, rows: [[{ text: "2" }]] });
  });

  test("leave out the columns whose values Lance has no text of", async () => {
    const { columns, rows } = await firstRows({
      "a`b": vectorFromArray([1], new Int32()),
      n: vectorFromArray([2], new Int32()),
    });
    expect(columns).toEqual([
      { name: "a`b", type: "int32", is_shown: false },
      { name: "n", type: "int32", is_shown: true },
    ]);
    expect(rows).toEqual([[null, { text: "2" }]]);
  });

  test("leave out the columns whose values Lance cannot evaluate as text", async () => {
    const { columns, rows } = await firstRows({
      ...{ a: vectorFromArray([1], new Int32()), b: vectorFromArray([2], new Int32()) },
      at: vectorFromArray([0], new Timestamp(TimeUnit.MICROSECOND, "Z")),
      kind: vectorFromArray([bytesOf(8)], new Dictionary(new Binary(), new Int32())),
      n: vectorFromArray([3], new Int32()),
    });
    expect(columns.map(({ is_shown }) => is_shown)).toEqual([true, true, false, false, true]);
    expect(rows).toEqual([[{ text: "1" }, { text: "2" }, null, null, { text: "3" }]]);
  });

  test("are 400 for a filter that Lance cannot evaluate", async () => {
    const id = await createTable({ n: vectorFromArray([0, 1], new Int32()), m: vectorFromArray([0, 1], new Int32()) });
    expect((await catalog.call("listTableRows", { id, filter: "1 / n > 0" })).status).toBe(400);
  });

  test("are 404 for a table that does not exist, and for one that is only declared", async () => {
    const id = await createTable({ n: vectorFromArray([1], new Int32()) });
    const declared = [...id.slice(0, 1), "declared"];
    await catalog.call("declareTable", { id: declared });
    for (const missing of [[...id.slice(0, 1), "missing"], declared])
      expect((await catalog.call("listTableRows", { id: missing })).status).toBe(404);
  });

  test("are 406 where operations on rows are off", async () => {
    const off = await startTestCatalog({ TILTYARD_DATA_OPERATIONS: "off" });
    try {
      expect((await off.call("listTableRows", { id: ["t"] })).error.detail).toContain("TILTYARD_DATA_OPERATIONS");
    } finally {
      await off.stop();
    }
  });
});
