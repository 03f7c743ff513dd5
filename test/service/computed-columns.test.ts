import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Storage } from "../../service/storage/storage.ts";
import { pathOf, startTestCatalog, useCatalog } from "../support/catalog.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog();

const payload = Buffer.from(JSON.stringify({ image: "x", udf_pickle: Buffer.from("pickled").toString("base64") }));
const sha = createHash("sha256").update(payload).digest("hex");

/** Returns a function as Geneva's client sends it. */
const virtual = (outputs: readonly object[], more: object = {}) => ({
  input_columns: ["title"],
  outputs: outputs.map((each) => ({ struct_field: "", nullable: true, ...each })),
  image: "x",
  udf: payload.toString("base64"),
  udf_name: "title_length",
  udf_version: "1",
  udf_backend: "DockerUDFSpecV1",
  ...more,
});

async function fieldsOf(id: readonly string[]) {
  const { schema } = (await catalog.call("describeTable", { id, load_detailed_metadata: true })).body;
  return Object.fromEntries((schema?.fields ?? []).map((field) => [field.name, field]));
}

async function add(id: readonly string[], ...new_columns: readonly object[]) {
  return catalog.call("alterTableAddColumns", { id, new_columns });
}

describe("a column that a function computes", () => {
  test("is added without values, with all that a job needs to fill it", async () => {
    const id = await createFilms(catalog);
    const column = virtual([{ column: "length", data_type: { type: "int64" } }], { field_metadata: { mine: "x" } });
    const added = await add(id, { name: "length", virtual_column: column });
    expect(added.body).toMatchObject({ version: 2, transaction_id: expect.any(String) });
    expect((await fieldsOf(id)).length).toMatchObject({
      type: { type: "int64" },
      metadata: {
        virtual_column: "true",
        "virtual_column.udf_backend": "DockerUDFSpecV1",
        "virtual_column.udf_name": "title_length",
        "virtual_column.udf": `_udfs/${sha}`,
        "virtual_column.udf_inputs": '["title"]',
        "virtual_column.auto_backfill": "false",
        mine: "x",
      },
    });
    const { location } = (await catalog.call("describeTable", { id })).body;
    expect(readFileSync(`/${pathOf({ id, location })}/_udfs/${sha}`)).toEqual(payload);
    expect((await catalog.call("countTableRows", { id, predicate: "length IS NULL" })).body).toBe(3);
    // Geneva's clients store their records in this namespace.
    expect((await catalog.call("describeNamespace", { id: ["__system"] })).status).toBe(200);
  });

  test("gets another function, whose job computes the rows of the former one again", async () => {
    const id = await createFilms(catalog);
    const outputs = [{ column: "length", data_type: { type: "int64" } }];
    await add(id, { name: "length", virtual_column: virtual(outputs, { manifest: "{}", manifest_checksum: "c" }) });
    const other = Buffer.from(JSON.stringify({ image: "x", udf_pickle: Buffer.from("other").toString("base64") }));
    const { outputs: _, ...function_ } = virtual([], { udf: other.toString("base64"), udf_name: "twice" });
    const alter = (path: string, ...more: readonly object[]) =>
      catalog.call("alterTableAlterColumns", { id, alterations: [{ path, virtual_column: function_ }, ...more] });
    expect((await alter("length")).body).toMatchObject({ version: 3 });
    const otherSha = createHash("sha256").update(other).digest("hex");
    const { metadata } = (await fieldsOf(id)).length ?? {};
    expect(metadata).toMatchObject({
      "virtual_column.udf": `_udfs/${otherSha}`,
      "virtual_column.udf_name": "twice",
      "virtual_column.udf_inputs": '["title"]',
    });
    expect(metadata).not.toHaveProperty(["virtual_column.manifest"]);
    const { location } = (await catalog.call("describeTable", { id })).body;
    expect(readFileSync(`/${pathOf({ id, location })}/_udfs/${otherSha}`)).toEqual(other);
    const { jobs } = (await catalog.call("listJobs", { id: id.slice(0, -1) })).body;
    expect(jobs).toMatchObject([{ operation: "AlterTableBackfillColumns", status: "Queued", column: "length" }]);
    const { job } = (await catalog.call("describeJob", { id: jobs[0]?.job_id.split("$") ?? [] })).body;
    expect(job.parameters).toEqual({ column: "length", where: "true" });
    expect((await alter("length")).error).toMatchObject({ status: 409, detail: expect.stringContaining("open job") });
    for (const path of ["title", "missing"])
      expect((await alter(path)).error).toMatchObject({
        status: 400,
        detail: expect.stringContaining("has no function"),
      });
    const rename = { path: "title", rename: "name" };
    expect((await alter("length", rename)).error).toMatchObject({ status: 400 });
    expect((await fieldsOf(id)).length?.metadata).toEqual(metadata);
  });

  test("has the type that the client's own library writes", async () => {
    const id = await createFilms(catalog);
    const item = { name: "item", nullable: true, type: { type: "float" } };
    const types: Readonly<Record<string, object>> = {
      vector: { type: "fixed_size_list", fields: [item], length: 4 },
      list: { type: "list", fields: [item] },
      struct: { type: "struct", fields: [{ name: "a", nullable: true, type: { type: "string" } }] },
      time: { type: "timestamp[us]" },
      money: { type: "decimal128(10, 2)" },
      day: { type: "date32:day" },
      spans: { type: "map<string, large_list<item: duration[ms]>>" },
      genre: { type: "dictionary<values=string, indices=int8, ordered=0>" },
      key: { type: "extension<arrow.uuid>" },
      tensor: { type: "extension<arrow.fixed_shape_tensor[value_type=float, shape=[2,3]]>" },
      nested: { type: "struct", fields: [{ ...item, metadata: { unit: "m" } }] },
      local: { type: "timestamp[us, tz=+05:30]" },
    };
    const outputs = Object.entries(types).map(([column, data_type]) => ({ column, data_type }));
    await add(id, { name: "vector", virtual_column: virtual(outputs) });
    expect(await fieldsOf(id)).toMatchObject({
      vector: { type: { type: "fixed_size_list", length: 4, fields: [{ type: { type: "float32" } }] } },
      list: { type: { type: "list", fields: [{ type: { type: "float32" } }] } },
      struct: { type: { type: "struct", fields: [{ name: "a", type: { type: "utf8" } }] } },
      time: { type: { type: "timestamp[us]" } },
      money: { type: { type: "decimal128", length: 10_002 } },
      day: { type: { type: "date32" } },
      spans: {
        type: { type: "map", fields: [{ type: { fields: [{ name: "key" }, { type: { type: "large_list" } }] } }] },
      },
      genre: { type: { type: "utf8" } },
      key: { type: { type: "fixed_size_binary", length: 16 }, metadata: { "ARROW:extension:name": "arrow.uuid" } },
      tensor: { type: { length: 6 }, metadata: { "ARROW:extension:metadata": '{"shape":[2,3]}' } },
      nested: { type: { fields: [{ metadata: { unit: "m" } }] } },
      local: { type: { type: "timestamp[us, tz=+05:30]" } },
    });
  });

  test("is one of several of the same function, each with metadata of its own", async () => {
    const id = await createFilms(catalog);
    const outputs = ["a", "b"].map((column) => ({
      column,
      struct_field: column,
      data_type: { type: "int64" },
      metadata: { "virtual_column.unpack_field": column },
    }));
    await add(id, { name: "a", virtual_column: virtual(outputs) });
    const fields = await fieldsOf(id);
    expect([
      fields.a?.metadata?.["virtual_column.unpack_field"],
      fields.b?.metadata?.["virtual_column.unpack_field"],
    ]).toEqual(["a", "b"]);
    expect(fields.b?.metadata?.["virtual_column.udf"]).toBe(`_udfs/${sha}`);
  });

  test("is filled by one job together with the other columns of its function", async () => {
    const id = await createFilms(catalog);
    const metadata = { "virtual_column.unpack_group": "g" };
    const outputs = ["a", "b"].map((column) => ({ column, data_type: { type: "int64" }, metadata }));
    await add(id, { name: "a", virtual_column: virtual(outputs) });
    const backfill = async (column: string) =>
      (await catalog.call("alterTableBackfillColumns", { id, column })).body.job_id;
    const job_id = await backfill("b");
    expect(await backfill("a")).toBe(job_id);
    expect((await catalog.call("describeJob", { id: job_id.split("$") })).body.job.column).toBe("a");
  });

  test("is neither dropped nor changed while a job fills it, except on a branch", async () => {
    const id = await createFilms(catalog);
    await add(id, { name: "length", virtual_column: virtual([{ column: "length", data_type: { type: "int64" } }]) });
    await catalog.call("createTableBranch", { id, name: "b" });
    const { job_id } = (await catalog.call("alterTableBackfillColumns", { id, column: "length" })).body;
    const rename = { path: "length", rename: "size" };
    const alter = () => catalog.call("alterTableAlterColumns", { id, alterations: [rename] });
    const drop = (more: object) => catalog.call("alterTableDropColumns", { id, columns: ["length"], ...more });
    for (const change of [alter, drop])
      expect((await change({})).error).toMatchObject({
        status: 409,
        detail: `the column length has the open job ${job_id}: wait for its end, or cancel it`,
      });
    expect((await drop({ branch: "b" })).status).toBe(200);
    await catalog.call("cancelJob", { id: job_id.split("$") });
    expect((await alter()).status).toBe(200);
  });

  test.each([
    ["changed", "alterTableAlterColumns", { alterations: [{ path: "length", rename: "size" }] }],
    ["dropped", "alterTableDropColumns", { columns: ["length"] }],
  ] as const)("is not %s if its job opens during the request", async (_, operation, change) => {
    let open: (() => Promise<unknown>) | undefined;
    const wrapStorage = (storage: Storage): Storage => ({
      at: async (location) => {
        const store = await storage.at(location);
        const persist: typeof store.persist = async (...args) => {
          await open?.();
          return store.persist(...args);
        };
        return { ...store, persist };
      },
    });
    const own = await startTestCatalog({}, { wrapStorage });
    const id = await createFilms(own);
    const virtual_column = virtual([{ column: "length", data_type: { type: "int64" } }]);
    await own.call("alterTableAddColumns", { id, new_columns: [{ name: "length", virtual_column }] });
    open = () => own.call("alterTableBackfillColumns", { id, column: "length" });
    const { error } = await own.call(operation, { id, ...change });
    expect(error).toMatchObject({ status: 409, detail: expect.stringContaining("the column length has the open job") });
    const { schema } = (await own.call("describeTable", { id, load_detailed_metadata: true })).body;
    expect(schema?.fields.map(({ name }) => name)).toContain("length");
    await own.stop();
  });

  test("is refused with a name in which Geneva would erase values, also if it was renamed to it", async () => {
    const id = await createFilms(catalog);
    const outputOf = (column: string) => ({ column, data_type: { type: "int64" } });
    const refused = {
      status: 400,
      detail: expect.stringContaining("rename it, with the letters A to Z, digits and _"),
    };
    for (const column of ["clip-embedding", "höhe", "2d"])
      expect((await add(id, { name: column, virtual_column: virtual([outputOf(column)]) })).error).toMatchObject(
        refused,
      );
    await add(id, { name: "length", virtual_column: virtual([outputOf("length")]) });
    const rename = { path: "length", rename: "höhe" };
    expect((await catalog.call("alterTableAlterColumns", { id, alterations: [rename] })).status).toBe(200);
    expect((await catalog.call("alterTableBackfillColumns", { id, column: "höhe" })).error).toMatchObject(refused);
  });

  test("is refused with more than 4 MiB of metadata, because each output has a copy of the manifest", async () => {
    const id = await createFilms(catalog);
    const outputs = Array.from({ length: 50 }, (_, index) => ({ column: `c${index}`, data_type: { type: "int64" } }));
    const manifest = JSON.stringify({ note: "x".repeat(100_000) });
    const { error } = await add(id, { name: "c0", virtual_column: virtual(outputs, { manifest }) });
    expect(error).toMatchObject({ status: 400, detail: expect.stringContaining("at most 4194304 are allowed") });
    const few = virtual(outputs.slice(0, 20), { manifest });
    expect((await add(id, { name: "c0", virtual_column: few })).status).toBe(200);
  });

  const length = { column: "length", data_type: { type: "int64" } };

  test("is filled in the environment of its manifest or of the request's manifest", async () => {
    const id = await createFilms(catalog);
    const manifest = JSON.stringify({ pip: ["numpy==2.1.3"] });
    // Geneva's checksum omits some fields of the manifest, so it is not that of the text.
    await add(id, { name: "length", virtual_column: virtual([length], { manifest, manifest_checksum: "a0" }) });
    expect((await fieldsOf(id)).length?.metadata?.["virtual_column.manifest_checksum"]).toBe("a0");
    const other = virtual([{ ...length, column: "other" }], { manifest });
    await add(id, { name: "other", virtual_column: other });
    const parametersOf = async (request: object) => {
      const { job_id } = (await catalog.call("alterTableBackfillColumns", { id, ...request })).body;
      return (await catalog.call("describeJob", { id: job_id.split("$") })).body.job.parameters;
    };
    expect(await parametersOf({ column: "length" })).toEqual({ column: "length", manifest });
    expect(await parametersOf({ column: "other", manifest: "{}" })).toEqual({ column: "other", manifest: "{}" });
    const huge = await catalog.call("alterTableBackfillColumns", {
      id,
      column: "length",
      manifest: JSON.stringify({ pip: ["x".repeat(230_000)] }),
    });
    expect(huge.error).toMatchObject({
      status: 400,
      detail: expect.stringContaining("the job's parameters: must have at most"),
    });
  });

  test.each([
    [
      "a function that is none",
      virtual([length], { udf: Buffer.from("{}").toString("base64") }),
      /udf: must be a function/,
    ],
    ["a function that is no Base64", virtual([length], { udf: "*" }), /udf/],
    [
      "an input that is no column",
      virtual([length], { input_columns: ["nothing"] }),
      /the column nothing does not exist/,
    ],
    [
      "an input with a path that Lance cannot split",
      virtual([length], { input_columns: ["title..length"] }),
      /the column title..length does not exist/,
    ],
    [
      "a type that there is not",
      virtual([{ ...length, data_type: { type: "int65" } }]),
      /no column can have the type "int65"/,
    ],
    ["no output", virtual([]), /at least one output/],
  ])("is refused with %s, and nothing is changed", async (_, column, message) => {
    const id = await createFilms(catalog);
    const refused = await add(id, { name: "before", expression: "id * 2" }, { name: "length", virtual_column: column });
    expect([refused.status, refused.error.detail]).toEqual([400, expect.stringMatching(message)]);
    expect(Object.keys(await fieldsOf(id))).toEqual(["id", "title"]);
  });

  test.each([
    "map<string>",
    "list<item: int64",
    "struct<a int64>",
    "extension<other>",
    "timestamp[us] ",
    "utf8<item: int64>",
  ])("is refused with the malformed type %s", async (type) => {
    const id = await createFilms(catalog);
    const column = virtual([{ column: "length", data_type: { type } }]);
    const { status, error } = await add(id, { name: "length", virtual_column: column });
    expect([status, error.detail]).toEqual([400, `data_type: no column can have the type ${JSON.stringify(type)}`]);
  });

  test("is added together with others in one commit, or none is", async () => {
    const id = await createFilms(catalog);
    const columns = [
      { name: "once", expression: "id * 2" },
      { name: "again", computed: "id * 3" },
      { name: "length", virtual_column: virtual([length]) },
    ];
    expect((await add(id, ...columns)).status).toBe(200);
    expect(Object.keys(await fieldsOf(id))).toEqual(["id", "title", "again", "once", "length"]);
    const refused = await add(
      id,
      { name: "more", expression: "id" },
      { name: "length", virtual_column: virtual([length]) },
    );
    expect(refused.status).toBe(400);
    expect(Object.keys(await fieldsOf(id))).not.toContain("more");
  });
});

describe("a computed column", () => {
  test("is added without values, with its expression and its inputs", async () => {
    const id = await createFilms(catalog);
    expect((await add(id, { name: "twice", computed: "id * 2" })).status).toBe(200);
    expect((await fieldsOf(id)).twice?.metadata).toMatchObject({
      "computed_column.expression": "(id * 2)",
      "computed_column.kind": "sql",
    });
    expect((await catalog.call("countTableRows", { id, predicate: "twice IS NULL" })).body).toBe(3);
  });

  test.each(["nothing * 2", "id *", "sum(id)"])(
    "is refused when its expression cannot be computed: %s",
    async (computed) => {
      const id = await createFilms(catalog);
      const refused = await add(id, { name: "twice", computed });
      expect([refused.status, refused.error.detail]).toEqual([400, expect.stringContaining("'twice'")]);
      expect(Object.keys(await fieldsOf(id))).toEqual(["id", "title"]);
    },
  );
});

test("a new column needs exactly one definition", async () => {
  const id = await createFilms(catalog);
  for (const column of [{ name: "x" }, { name: "x", expression: "id", computed: "id" }])
    expect((await add(id, column)).error).toMatchObject({
      status: 400,
      detail: expect.stringContaining("needs one of"),
    });
});
