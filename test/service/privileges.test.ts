import { beforeAll, describe, expect, test } from "vitest";
import { useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms, films } from "../support/rows.ts";

/** Tries to exceed the rights of a role by what a request contains. */
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

  test("is made by a writer that is a reader of its source", async () => {
    const key = await catalog.keyFor("view-reader", { mine: "writer", victim: "reader" });
    expect((await create(key, "readable", "victim$films", { auto_refresh: true })).status).toBe(201);
  });
});

describe("a rename", () => {
  test("with an empty namespace needs the rights of a rename in place", async () => {
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

  test("of a job that its opener runs stay, too", async () => {
    const table = await createFilms(catalog);
    const { job_id } = (await catalog.call("openJob", { id: table, column: "title" })).body;
    const actions = [{ setPropertyAction: { key: "column", value: "id" } }];
    expect((await catalog.call("alterTransaction", { id: job_id.split("$"), actions })).status).toBe(400);
  });
});
