import { beforeAll, describe, expect, test } from "vitest";
import { startTestCatalog, useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms, films } from "../support/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** The tests try to exceed the rights of a role by the content of requests. */
const catalog = useCatalog({ TILTYARD_RUNNER_API_KEY: "key-of-the-runner-0123456789" });

beforeAll(async () => {
  for (const id of [["mine"], ["victim"]]) await catalog.call("createNamespace", { id });
  expect((await catalog.call("createTable", { id: ["victim", "films"] }, { body: arrowStream(films) })).status).toBe(
    200,
  );
});

describe("a materialized view", () => {
  const output_schema = Buffer.from(arrowStream([])).toString("base64");
  const create = (key: string, name: string, source: string, more: object = {}) => {
    const source_query = JSON.stringify({ base: {}, source_table: source });
    return catalog.call(
      "createMaterializedView",
      { id: ["mine", name], kind: "query", source_query, output_schema, ...more },
      { key },
    );
  };

  test.each(["victim$films", "victim$missing", "films"])(
    "is 403 over %s without the role reader there",
    async (source) => {
      const key = await catalog.keyFor("view-maker", { mine: "admin" });
      for (const more of [{}, { auto_refresh: true }, { with_no_data: false }])
        expect((await create(key, "view", source, more)).error).toMatchObject({ status: 403, code: 15 });
    },
  );

  test("is created by a writer that is a reader of its source", async () => {
    const key = await catalog.keyFor("view-reader", { mine: "writer", victim: "reader" });
    expect((await create(key, "readable", "victim$films", { auto_refresh: true })).status).toBe(201);
  });
});

describe("a rename", () => {
  test("needs the rights of a rename in place when its namespace is empty", async () => {
    await catalog.call("declareTable", { id: ["mine", "java"] });
    const key = await catalog.keyFor("java", { mine: "writer" });
    const request = { id: ["mine", "java"], new_table_name: "java2", new_namespace_id: [] };
    expect((await catalog.call("renameTable", request, { key })).status).toBe(200);
    const rootAlone = await catalog.keyFor("root-alone", { java3: "writer", mine$java2: "writer" });
    const elsewhere = { id: ["mine", "java2"], new_table_name: "java3", new_namespace_id: [] };
    expect((await catalog.call("renameTable", elsewhere, { key: rootAlone })).status).toBe(403);
  });
});

describe("the parameters of an open job", () => {
  const openCompaction = async (id: string[]) => {
    const { job_id } = (await catalog.call("compactTable", { id })).body;
    return job_id.split("$");
  };

  test("cannot be set, replaced or removed by a writer of the table, or by a runner", async () => {
    const table = await createFilms(catalog);
    const { body } = await catalog.call("buildTableIndex", { id: table, column: "id", index_type: "BTREE" });
    const id = body.job_id.split("$");
    const before = (await catalog.call("describeJob", { id })).body.job;
    const writer = await catalog.keyFor("writer", { [table[0] ?? ""]: "writer" });
    for (const key of [writer, "key-of-the-runner-0123456789", catalog.adminKey])
      for (const action of [
        { setPropertyAction: { key: "column", value: "title" } },
        { setPropertyAction: { key: "column", value: "id" } },
        { setPropertyAction: { key: "name", value: "new" } },
        { setPropertyAction: { key: "name", value: "new", mode: "Skip" } },
        { unsetPropertyAction: { key: "index_type" } },
        { setPropertyAction: { key: "materialized_view.source_query", value: "{}" } },
      ]) {
        const { error } = await catalog.call("alterTransaction", { id, actions: [action] }, { key });
        expect(error).toMatchObject({
          status: 400,
          detail: expect.stringContaining("is a parameter of BuildTableIndex"),
        });
      }
    expect((await catalog.call("describeJob", { id })).body.job).toEqual(before);
  });

  test("do not include what a writer adds under a name of its own", async () => {
    const table = await createFilms(catalog);
    const id = await openCompaction(table);
    const actions = [{ setPropertyAction: { key: "team", value: "films" } }];
    const altered = await catalog.call("alterTransaction", { id, actions });
    expect(altered.body.properties).toMatchObject({ team: "films" });
    expect((await catalog.call("describeJob", { id })).body.job.parameters).not.toHaveProperty("team");
  });

  test("stay also when the opener runs the job", async () => {
    const table = await createFilms(catalog);
    const { job_id } = (await catalog.call("openJob", { id: table, column: "title" })).body;
    const actions = [{ setPropertyAction: { key: "column", value: "id" } }];
    expect((await catalog.call("alterTransaction", { id: job_id.split("$"), actions })).status).toBe(400);
  });
});

describe("the location of a table", () => {
  const writer = (name: string) => catalog.keyFor(`writer-of-${name}`, { [name]: "admin" });
  const declare = (key: string, id: string[], location: string) =>
    catalog.call("declareTable", { id, location }, { key });
  const inWarehouse = (path: string) => `file://${encodeURI(catalog.dataDir)}/warehouse/${path}`;

  test("lies in the folder of its namespace, for all operations that name one", async () => {
    const key = await writer("mine");
    for (const location of [
      "victim",
      "victim/t",
      "victim.lance",
      "mine",
      "mineral/t",
      inWarehouse("victim/t"),
      "min/../victim",
    ]) {
      const status = [400, 403];
      expect(status, location).toContain((await declare(key, ["mine", "t"], location)).status);
      const id = ["mine", "t"];
      expect(status).toContain((await catalog.call("registerTable", { id, location }, { key })).status);
      const replaced = { id, location, mode: "Overwrite" };
      expect(status).toContain((await catalog.call("registerTable", replaced, { key })).status);
      const operations = [{ declare_table: { id, location } }];
      expect(status).toContain((await catalog.call("batchCommitTables", { operations }, { key })).status);
    }
    expect((await declare(key, ["mine", "t"], inWarehouse("mine/t"))).status).toBe(200);
    expect((await declare(key, ["mine", "u"], "mine/deep/u")).status).toBe(200);
    expect((await catalog.call("createTable", { id: ["victim", "more"] }, { body: arrowStream(films) })).status).toBe(
      200,
    );
    expect((await declare(catalog.adminKey, ["mine", "v"], "anywhere/v")).status).toBe(200);
  });

  test("needs the rights of the whole namespace, not those of the table alone", async () => {
    const key = await catalog.keyFor("of-one-table", { mine$one: "writer", one: "writer" });
    expect((await declare(key, ["mine", "one"], "mine/one")).status).toBe(403);
    // The role on a namespace also covers a table of the root with the name of the namespace.
    expect((await declare(key, ["one"], "victim/one")).status).toBe(403);
    expect((await catalog.call("declareTable", { id: ["mine", "one"] }, { key })).status).toBe(200);
  });

  test("is in a folder that no other namespace has, however the names look in a path", async () => {
    for (const id of [["a_b"], ["a.b"], ["a b"]]) await catalog.call("createNamespace", { id });
    const key = await writer("a.b");
    expect((await declare(key, ["a.b", "t"], "a_b/t")).status).toBe(403);
    const folders = [];
    for (const namespace of ["a_b", "a.b", "a b"]) {
      const { location } = (await catalog.call("declareTable", { id: [namespace, "t"] })).body;
      folders.push(location.split("/").at(-2));
    }
    expect(new Set(folders).size).toBe(3);
  });

  test("stays reserved after a deregistration: no parent covers it and no other namespace reads it", async () => {
    const key = await writer("mine");
    const id = ["mine", "kept"];
    const { location } = (await catalog.call("createTable", { id }, { key, body: arrowStream(films) })).body;
    await catalog.call("deregisterTable", { id }, { key });
    const parent = location.replace(/\/[^/]*$/, "");
    for (const each of [parent, `${location}/inside`])
      expect((await declare(catalog.adminKey, ["covering"], each)).status).toBe(409);
    await catalog.call("createNamespace", { id: ["mine", "below"] });
    const theirs = await catalog.keyFor("below", { mine$below: "admin" });
    expect(
      (await catalog.call("registerTable", { id: ["mine", "below", "t"], location }, { key: theirs })).status,
    ).toBe(403);
    expect((await catalog.call("registerTable", { id, location }, { key })).status).toBe(200);
    expect((await catalog.call("countTableRows", { id }, { key })).body).toBe(films.length);
    // A table that is registered again can be dropped like any other.
    await catalog.call("dropTable", { id }, { key });
  });

  test("does not follow a rename into another namespace, whose writers get no other folder by it", async () => {
    await catalog.call("createNamespace", { id: ["other"] });
    const key = await catalog.keyFor("both", { mine: "writer", other: "writer" });
    const { location } = (await catalog.call("declareTable", { id: ["mine", "moving"] }, { key })).body;
    const request = { id: ["mine", "moving"], new_namespace_id: ["other"], new_table_name: "moved" };
    expect((await catalog.call("renameTable", request, { key })).status).toBe(200);
    await catalog.call("deregisterTable", { id: ["other", "moved"] }, { key });
    const others = await writer("other");
    expect((await catalog.call("registerTable", { id: ["other", "moved"], location }, { key: others })).status).toBe(
      403,
    );
    const mine = await writer("mine");
    expect((await declare(mine, ["mine", "moved"], location)).status).toBe(409);
  });
});

test("a location that the operator assigns to a namespace is for its writers, and for no others", async () => {
  const folder = temporaryFolder("tiltyard-assigned-");
  const own = await startTestCatalog({ TILTYARD_ALLOWED_LOCATIONS: `mine$team=${folder}/team,${folder}/all` });
  for (const id of [["mine"], ["mine", "team"], ["mine", "team", "sub"], ["victim"]])
    await own.call("createNamespace", { id });
  const declare = async (key: string, id: string[], location: string) =>
    (await own.call("declareTable", { id, location }, { key })).status;
  const team = await own.keyFor("team", { mine$team: "writer" });
  const sub = await own.keyFor("sub", { mine$team$sub: "writer" });
  const victim = await own.keyFor("victim", { victim: "admin" });
  const root = await own.keyFor("root", { $: "writer" });
  expect(await declare(team, ["mine", "team", "t"], `${folder}/team/t`)).toBe(200);
  expect(await declare(team, ["mine", "team", "sub", "t"], `${folder}/team/sub/t`)).toBe(200);
  expect(await declare(sub, ["mine", "team", "sub", "u"], `${folder}/team/sub/u`)).toBe(403);
  expect(await declare(victim, ["victim", "t"], `${folder}/team/v`)).toBe(403);
  expect(await declare(team, ["mine", "team", "u"], `${folder}/all/u`)).toBe(403);
  expect(await declare(root, ["victim", "u"], `${folder}/all/u`)).toBe(200);
  await own.stop();
});
