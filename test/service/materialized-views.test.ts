import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import * as lancedb from "@lancedb/lancedb";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { commit, declareTable, startTestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";
import { arrowStream, films, readRows } from "../support/rows.ts";

const catalog = useCatalog();
beforeAll(async () => {
  expect((await catalog.call("createTable", { id: ["films"] }, { body: arrowStream(films) })).status).toBe(200);
});

/** A schema without rows, in the format of pyarrow's `Schema.serialize()`. */
const output_schema = Buffer.from(arrowStream([])).toString("base64");
/** The schema of `pa.schema([("words", pa.large_list(pa.string_view()))])`. */
const listsOfViews =
  "/////6AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAEAAAAEAAAA1P///wAAARUUAAAAHAAAAAQAAAABAAAAJAAAAAUAAAB3b3JkcwAAAMj///8QABQACAAGAAcADAAAABAAEAAAAAAAARgQAAAAHAAAAAQAAAAAAAAABAAAAGl0ZW0AAAAABAAEAAQAAAAAAAAA";
const source_query = '{"base": {}, "source_table": "films"}';
const query = { kind: "query", source_query, output_schema };
const udtf = Buffer.from('{"name": "chunks"}');
const udtf_spec = {
  kind: "chunker",
  udtf: udtf.toString("base64"),
  udtf_sha: createHash("sha256").update(udtf).digest("hex"),
  udtf_name: "chunks",
  udtf_version: "1",
  num_cpus: 0.5,
};
const chunker = { kind: "chunker", source_query, output_schema, udtf_spec };

async function newView(): Promise<string[]> {
  const namespace = uniqueName("ns");
  await catalog.call("createNamespace", { id: [namespace] });
  return [namespace, "view"];
}

const create = (id: readonly string[], request: object) => catalog.call("createMaterializedView", { id, ...request });
const refresh = (id: readonly string[], request: object = {}) =>
  catalog.call("refreshMaterializedView", { id, ...request });

async function job(name: string | undefined) {
  return (await catalog.call("describeTransaction", { id: name?.split("$") ?? [] })).body;
}

const definition = {
  "materialized_view.kind": "query",
  "materialized_view.source_query": source_query,
  "materialized_view.output_schema": output_schema,
  "materialized_view.auto_refresh": "false",
};

describe("CreateMaterializedView", () => {
  test("finds the source in the database of the client, although the root has a table with that name", async () => {
    const own = await startTestCatalog({ TILTYARD_REMOTE_DATABASES: "on" });
    onTestFinished(own.stop);
    await own.call("createNamespace", { id: ["base"] });
    for (const id of [["films"], ["base", "films"]])
      await own.call("createTable", { id }, { body: arrowStream(films) });
    const key = await own.keyFor("team", { base: "writer", __system: "writer" });
    const options = { key, headers: { "x-lancedb-database": "base" } };
    const created = await own.call("createMaterializedView", { id: ["view"], ...query, with_no_data: false }, options);
    expect(created.status).toBe(201);
    expect((await own.call("listTableViews", { id: ["base", "films"] })).body.views).toEqual([["base", "view"]]);
    const id = created.body.job_id?.split("$") ?? [];
    expect((await own.call("describeTransaction", { id })).body.properties).toMatchObject({
      "materialized_view.source_query": '{"base":{},"source_table":"base$films"}',
    });
  });

  test("refuses a source whose manifest is not a file of Lance", async () => {
    const source = await declareTable(catalog);
    expect((await commit(catalog, source, 1)).status).toBe(200);
    const of = JSON.stringify({ base: {}, source_table: source.id.join("$") });
    const { error } = await create([...source.id.slice(0, -1), "view"], { ...query, source_query: of });
    expect(error).toMatchObject({ status: 406, detail: expect.stringContaining("this is not a file of Lance") });
  });

  test("creates a table without rows, with the definition as properties", async () => {
    const id = await newView();
    const answer = await create(id, query);
    expect([answer.status, answer.body]).toEqual([201, { version: 1 }]);
    const { body } = await catalog.call("describeTable", { id, load_detailed_metadata: true });
    expect(body).toMatchObject({ version: 1, properties: definition, schema: { fields: [{ name: "id" }, {}] } });
    expect(await readRows((await catalog.call("queryTable", { id, k: 9 })).body)).toEqual([]);
    await catalog.call("insertIntoTable", { id }, { body: arrowStream(films) });
    expect((await catalog.call("countTableRows", { id })).body).toBe(films.length);
  });

  test("writes the definition for Geneva into the schema's metadata", async () => {
    const metadataOf = async (request: object) => {
      const id = await newView();
      expect((await create(id, request)).status).toBe(201);
      return (await catalog.call("describeTable", { id, load_detailed_metadata: true })).body.schema?.metadata;
    };
    const shared = {
      "geneva::view::query": '{"base":{},"source_table":"films","source_db_uri":"namespace://"}',
      "geneva::view::base_table": "films",
      "geneva::view::base_table_db_uri": "namespace://",
      "geneva::view::base_table_version": "1",
    };
    expect(await metadataOf(query)).toEqual({ ...shared, "geneva::view::version": "1" });
    // Geneva's client sends the SHA-256 of the Base64 text.
    const udtf_sha = createHash("sha256").update(udtf_spec.udtf).digest("hex");
    expect(await metadataOf({ ...chunker, udtf_spec: { ...udtf_spec, udtf_sha } })).toEqual({
      ...shared,
      "geneva::view::version": "chunker",
      "geneva::view::chunker": udtf.toString(),
    });
    expect(await metadataOf({ ...query, source_query: "SELECT 1" })).toBeUndefined();
    const deep = `{"source_table": "films", "x": ${"[".repeat(20_000)}${"]".repeat(20_000)}}`;
    expect((await create(await newView(), { ...query, source_query: deep })).error).toMatchObject({
      status: 400,
      detail: "source_query: nests too deep",
    });
    const missing = await create(await newView(), { ...query, source_query: '{"source_table": "missing"}' });
    expect(missing.error).toMatchObject({ status: 404, detail: expect.stringContaining("missing") });
  });

  test("follows a table whose rows keep their ids, and has such rows itself", async () => {
    const id = await newView();
    const folder = `${catalog.dataDir}/warehouse/${id[0]}-written`;
    const db = await lancedb.connect(folder);
    const written = { storageOptions: { newTableEnableStableRowIds: "true" } };
    await db.createTable("stable", [{ id: 1, title: "Stalker" }], written);
    const source = [...id.slice(0, -1), "stable"];
    const registered = await catalog.call("registerTable", { id: source, location: `file://${folder}/stable.lance` });
    expect(registered.status).toBe(200);
    const request = { ...query, source_query: JSON.stringify({ base: {}, source_table: source.join("$") }) };
    expect((await create(id, request)).status).toBe(201);
    const metadata = async (table: readonly string[]) =>
      (await catalog.call("describeTable", { id: table, load_detailed_metadata: true })).body.schema?.metadata;
    expect(await metadata(id)).toMatchObject({
      "geneva::view::version": "2",
      "geneva::view::base_table": "stable",
      "geneva::view::namespace_path": id[0],
    });
    // A view of the view inherits this, too.
    const second = [...id.slice(0, -1), "second"];
    await create(second, { ...query, source_query: JSON.stringify({ base: {}, source_table: id.join("$") }) });
    expect(await metadata(second)).toMatchObject({ "geneva::view::version": "2" });
  });

  test("opens the first refresh when it is to have data, with all that the compute side needs", async () => {
    const id = await newView();
    const { body } = await create(id, { ...chunker, with_no_data: false, auto_refresh: true });
    expect(body).toEqual({ version: 1, job_id: expect.any(String) });
    const opened = await job(body.job_id);
    expect(opened).toMatchObject({
      status: "Queued",
      context: { operation: "RefreshMaterializedView", objects: JSON.stringify([id]) },
      properties: { ...definition, "materialized_view.kind": "chunker", "materialized_view.auto_refresh": "true" },
    });
    expect(JSON.parse(opened.properties["materialized_view.udtf_spec"] ?? "")).toEqual(udtf_spec);
  });

  test("is 400 for a definition that contradicts itself, and leaves nothing behind", async () => {
    const id = await newView();
    for (const [request, detail] of [
      [{ ...query, udtf_spec }, "udtf_spec.kind: is chunker"],
      [{ ...chunker, udtf_spec: null }, "udtf_spec: a view of the kind chunker needs it"],
      [{ ...chunker, udtf_spec: { ...udtf_spec, kind: "udtf" } }, "udtf_spec.kind: is udtf"],
      [{ ...chunker, udtf_spec: { ...udtf_spec, udtf_sha: "00" } }, "udtf_spec.udtf_sha: the SHA-256"],
      [{ ...chunker, udtf_spec: { ...udtf_spec, partition_by: "a", partition_by_indexed_column: "b" } }, "use one"],
      [{ ...query, source_query: "x".repeat(200_000) }, "the view's definition: must have at most 196608 characters"],
      [
        { ...chunker, udtf_spec: { ...udtf_spec, manifest: "x".repeat(150_000) }, with_no_data: false },
        "the job's parameters: must have at most 229376 characters",
      ],
      [{ ...query, output_schema: "AAAA" }, "output_schema: "],
      [{ ...query, output_schema: Buffer.from(arrowStream(films)).toString("base64") }, "it has rows"],
      [{ ...query, output_schema: "?" }, "output_schema: "],
      [{ ...query, kind: "other" }, "kind: "],
    ] as const)
      expect((await create(id, request)).error).toMatchObject({
        status: 400,
        code: 13,
        detail: expect.stringContaining(detail),
      });
    expect((await catalog.call("listTables", { id: id.slice(0, 1) })).body.tables).toEqual([]);
    expect(existsSync(`${catalog.dataDir}/warehouse/${id[0]}`)).toBe(false);
  });

  test("creates a view with types that the library for JavaScript cannot read, and with the metadata of its source", async () => {
    const id = await newView();
    const source_of = { ...query, source_query: JSON.stringify({ base: {}, source_table: "films" }) };
    expect((await create(id, { ...source_of, output_schema: listsOfViews })).status).toBe(201);
    const { schema } = (await catalog.call("describeTable", { id, load_detailed_metadata: true })).body;
    const item = { name: "item", nullable: true, type: { type: "utf8" } };
    expect(schema?.fields).toEqual([{ name: "words", nullable: true, type: { type: "large_list", fields: [item] } }]);
    expect(Object.keys(schema?.metadata ?? {})).toContain("geneva::view::query");
  });

  test("is 404 without the namespace, and 409 when the name is taken", async () => {
    expect((await create([uniqueName("ns"), "view"], query)).error).toMatchObject({ status: 404, code: 1 });
    const { id } = await declareTable(catalog);
    expect((await create(id, query)).error).toMatchObject({ status: 409, code: 5 });
  });
});

describe("RefreshMaterializedView", () => {
  test("opens a Queued transaction that the compute side updates", async () => {
    const id = await newView();
    await create(id, query);
    const answer = await refresh(id, { src_version: 7, cluster: "default", manifest: null });
    expect(answer.status).toBe(202);
    const properties = { ...definition, src_version: "7", cluster: "default" };
    expect(await job(answer.body.job_id)).toMatchObject({ status: "Queued", properties });
    const actions = [
      { setStatusAction: { status: "Running" } },
      { setPropertyAction: { key: "ray_job", value: "raysubmit_1" } },
    ];
    const altered = await catalog.call("alterTransaction", { id: answer.body.job_id.split("$"), actions });
    expect(altered.body).toMatchObject({ status: "Running", properties: { ...properties, ray_job: "raysubmit_1" } });
    expect((await job(answer.body.job_id)).properties).toEqual({ ...properties, ray_job: "raysubmit_1" });
  });

  test("runs in the environment of the view's function or of the request", async () => {
    const manifest = JSON.stringify({ pip: ["numpy==2.1.3"] });
    const [one, two] = [await newView(), await newView()];
    for (const id of [one, two]) await create(id, { ...chunker, udtf_spec: { ...udtf_spec, manifest } });
    const parametersOf = async (id: string[], request: object) =>
      (await job((await refresh(id, request)).body.job_id)).properties;
    expect(await parametersOf(one, {})).toMatchObject({ manifest });
    expect(await parametersOf(two, { manifest: "{}" })).toMatchObject({ manifest: "{}" });
  });

  test("accepts views that Geneva created, without a definition in the catalog", async () => {
    const { id } = await declareTable(catalog);
    const { job_id } = (await refresh(id, { output_limit: 5 })).body;
    expect(await job(job_id)).toMatchObject({ properties: { output_limit: "5" } });
  });

  test("is 400 for a limit of rows on a view that is no chunker, and 404 without a view", async () => {
    const [plain, chunks] = [await newView(), await newView()];
    await create(plain, query);
    await create(chunks, chunker);
    expect((await refresh(plain, { output_limit: 5 })).error).toMatchObject({ status: 400, code: 13 });
    expect((await refresh(chunks, { output_limit: 5 })).status).toBe(202);
    expect((await refresh([...plain, "missing"])).error).toMatchObject({ status: 404, code: 4 });
  });
});

test("ListTableViews lists the views of a table that the caller may read, in any namespace", async () => {
  const source = await newView();
  await catalog.call("createTable", { id: source }, { body: arrowStream(films) });
  const views = [await newView(), await newView()];
  const of = (table: readonly string[]) => ({
    ...query,
    source_query: JSON.stringify({ base: {}, source_table: table.join("$") }),
  });
  for (const id of views) await create(id, of(source));
  await create(await newView(), of(["films"]));
  const list = async (key?: string) =>
    (await catalog.call("listTableViews", { id: source }, key === undefined ? {} : { key })).body.views;
  expect((await list()).sort()).toEqual([...views].sort());
  const [first = []] = views;
  const grants = { [source[0] ?? ""]: "reader", [first[0] ?? ""]: "reader" } as const;
  expect(await list(await catalog.keyFor(uniqueName("reader"), grants))).toEqual([first]);
  expect((await catalog.call("listTableViews", { id: ["missing"] })).status).toBe(404);
  const page = (await catalog.call("listTableViews", { id: source, limit: 1 })).body;
  expect(page).toEqual({ views: [views[0]], page_token: expect.any(String) });
  const { page_token } = page;
  expect((await catalog.call("listTableViews", { id: source, page_token })).body).toEqual({ views: [views[1]] });
});
