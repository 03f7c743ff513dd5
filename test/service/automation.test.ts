import { ChildEnded } from "@tiltyard/lance-worker";
import { CatalogError } from "@tiltyard/protocol";
import { describe, expect, test } from "vitest";
import { openDueJobs } from "../../service/automation/open-due-jobs.ts";
import { createFinishing } from "../../service/commits/finish.ts";
import { requireTable } from "../../service/domain/require.ts";
import { createLog } from "../../service/log.ts";
import type { Rows } from "../../service/rows/rows.ts";
import { createStorage, type Storage } from "../../service/storage/storage.ts";
import { openStore } from "../../service/store/open.ts";
import type { Store } from "../../service/store/store.ts";
import { startTestCatalog, type TestCatalog, useCatalog } from "../support/catalog.ts";
import { executeSql } from "../support/database.ts";
import { doDeferredWork as doWorkOf, useDeferredWork } from "../support/deferred-work.ts";
import { functionColumns, registerFunction } from "../support/functions.ts";
import { arrowStream, createFilms, films } from "../support/rows.ts";
import { viewMetadata } from "../support/views.ts";

/** The delay of the catalog itself exceeds the duration of these tests. */
const catalog = useCatalog({ TILTYARD_AUTOMATION_DELAY: "9d", TILTYARD_AUTO_REFRESH: "on" });
const doDeferredWork = useDeferredWork(catalog);
const udf = Buffer.from(JSON.stringify({ udf_pickle: Buffer.from("pickle").toString("base64") })).toString("base64");

const virtual_column = {
  input_columns: ["title"],
  outputs: [{ column: "length", struct_field: "", nullable: true, data_type: { type: "int64" } }],
  image: "x",
  udf,
  udf_name: "length",
  udf_version: "1",
  manifest: "{}",
  auto_backfill: true,
};

async function createAutomatic(on: TestCatalog = catalog): Promise<string[]> {
  const id = await createFilms(on);
  const added = await on.call("alterTableAddColumns", { id, new_columns: [{ name: "length", virtual_column }] });
  expect(added.status).toBe(200);
  return id;
}

const append = (id: readonly string[], on: TestCatalog = catalog) =>
  on.call("insertIntoTable", { id }, { body: arrowStream(films) });

/** Returns the jobs that the catalog has opened automatically with their statuses, the latest first. */
async function jobsOn(id: readonly string[]) {
  await doDeferredWork();
  const { jobs } = (await catalog.call("listJobs", { table: id.join("$") })).body;
  const described = jobs.map(({ job_id }) => catalog.call("describeJob", { id: job_id.split("$") }));
  return (await Promise.all(described)).map(({ body }) => body.job);
}

async function end(job: string, ...statuses: readonly string[]) {
  const actions = statuses.map((status) => ({ setStatusAction: { status } }));
  expect((await catalog.call("alterTransaction", { id: job.split("$"), actions })).status).toBe(200);
}

/** Replaces the policy of a table. The next time of the schedule exceeds the duration of these tests. */
async function putSchedule(
  id: readonly string[],
  policy: object = { auto_refresh: { schedule: { cron: "0 3 1 1 *", time_zone: "Europe/Berlin" } } },
): Promise<void> {
  expect((await catalog.call("putTablePolicy", { id, ...policy })).status).toBe(200);
}

/** Moves all commits and automations to the past, as if the catalog had been down since. */
async function moveToPast(days: number): Promise<void> {
  for (const [table, column] of [
    ["automations", "since_millis"],
    ["table_versions", "timestamp_millis"],
  ])
    await executeSql(catalog.database, `update ${table} set ${column} = ${column} - ${days * 86_400_000}`);
}

describe("a column with auto_backfill", () => {
  test("gets one job for the new rows of several commits, and none for the rows that it began with", async () => {
    const id = await createAutomatic();
    expect(await jobsOn(id)).toEqual([]);
    for (let commit = 0; commit < 10; commit++) await append(id);
    expect(await jobsOn(id)).toMatchObject([
      {
        operation: "AlterTableBackfillColumns",
        status: "Queued",
        parameters: { column: "length", manifest: "{}" },
        principal: "bootstrap",
      },
    ]);
    await append(id);
    expect(await jobsOn(id)).toHaveLength(1);
  });

  test("opens another job for rows that arrived during one, and none for commits of a job without new rows", async () => {
    const id = await createAutomatic();
    await append(id);
    const [first] = await jobsOn(id);
    if (first === undefined) throw new Error("there is a job");
    await end(first.job_id, "Running");
    await append(id);
    expect(await jobsOn(id)).toHaveLength(1);
    await end(first.job_id, "Succeeded");
    const [second, ...others] = await jobsOn(id);
    expect([second?.status, others.length]).toEqual(["Queued", 1]);
    // These commits add no rows.
    await catalog.call("alterTableAlterColumns", { id, alterations: [{ path: "title", rename: "name" }] });
    await catalog.call("deleteFromTable", { id, predicate: "id = 1" });
    await end(second?.job_id ?? "", "Running", "Succeeded");
    expect(await jobsOn(id)).toHaveLength(2);
  });

  test("gets its own job after one that may leave new rows out", async () => {
    const id = await createAutomatic();
    const asked = await catalog.call("alterTableBackfillColumns", { id, column: "length", where: "id = 1" });
    await append(id);
    expect(await jobsOn(id)).toHaveLength(1);
    await end(asked.body.job_id, "Canceled");
    expect(await jobsOn(id)).toMatchObject([{ status: "Queued", parameters: { column: "length" } }, {}]);
  });

  test("gets jobs for the principal of its first job when it was added past the catalog", async () => {
    const ann = await catalog.keyFor("ann", { $: "writer" });
    const id = await createFilms(catalog);
    // Geneva's own connection commits this way: the catalog sees versions but does not inspect them.
    const metadata = { virtual_column: "true", "virtual_column.auto_backfill": "true" };
    await catalog.call("updateFieldMetadata", { id, updates: [{ path: "title", metadata }] });
    await append(id);
    expect(await jobsOn(id)).toEqual([]);
    const asked = await catalog.call("alterTableBackfillColumns", { id, column: "title" }, { key: ann });
    expect(await jobsOn(id)).toHaveLength(1);
    await end(asked.body.job_id, "Running", "Succeeded");
    expect(await jobsOn(id)).toHaveLength(1);
    await append(id);
    const own = { status: "Queued", parameters: { column: "title" }, principal: "ann" };
    expect(await jobsOn(id)).toMatchObject([own, {}]);
  });

  test.each(["openJob", "buildTableIndex"] as const)(
    "gets no jobs for the principal of %s when it was added past the catalog",
    async (operation) => {
      const ann = await catalog.keyFor("ann", { $: "writer" });
      const id = await createFilms(catalog);
      await catalog.call("putTablePolicy", { id, auto_compact: { small_fragments: 100 } });
      const opened = await catalog.call(operation, { id, column: "title", index_type: "BTREE" }, { key: ann });
      const metadata = { virtual_column: "true", "virtual_column.auto_backfill": "true" };
      await catalog.call("updateFieldMetadata", { id, updates: [{ path: "title", metadata }] });
      await append(id);
      expect(await jobsOn(id)).toMatchObject([{ job_id: opened.body.job_id }]);
      await append(id);
      expect(await jobsOn(id)).toHaveLength(1);
    },
  );

  test("gets a job for rows of a writer whose clock is ahead", async () => {
    const id = await createAutomatic();
    await append(id);
    await using store = await openStore(catalog.database);
    const { id: tableId } = await requireTable(store.read, id);
    await executeSql(
      catalog.database,
      `update table_versions set timestamp_millis = timestamp_millis + 86400000 where table_id = ${tableId}`,
    );
    expect(await jobsOn(id)).toMatchObject([{ status: "Queued", column: "length" }]);
  });

  test("gets a job for the rows that arrived while no job could open its table by its name", async () => {
    const id = await createAutomatic();
    const renamed = [id[0] ?? "", "$"];
    const byMark = { delimiter: "!" };
    expect((await catalog.call("renameTable", { id, new_table_name: "$" }, byMark)).status).toBe(200);
    const added = await catalog.call("insertIntoTable", { id: renamed }, { ...byMark, body: arrowStream(films) });
    expect(added.status).toBe(200);
    expect(await jobsOn(id)).toEqual([]);
    expect((await catalog.call("renameTable", { id: renamed, new_table_name: id[1] }, byMark)).status).toBe(200);
    expect(await jobsOn(id)).toMatchObject([{ status: "Queued", column: "length" }]);
  });

  test("opens no job for a dropped column and for one without auto_backfill", async () => {
    const id = await createAutomatic();
    await catalog.call("alterTableDropColumns", { id, columns: ["length"] });
    await append(id);
    expect(await jobsOn(id)).toEqual([]);
    const plain = await createFilms(catalog);
    const manual = { ...virtual_column, auto_backfill: false };
    await catalog.call("alterTableAddColumns", {
      id: plain,
      new_columns: [{ name: "length", virtual_column: manual }],
    });
    await append(plain);
    expect(await jobsOn(plain)).toEqual([]);
  });
});

describe("a column with auto_refresh_enabled", () => {
  /** Adds a column that SQL computes, as lancedb 0.41 does. */
  const addComputed = (id: readonly string[], more: object, on: TestCatalog = catalog) =>
    on.call("remoteAlterTableAddColumns", { id, new_columns: [{ name: "twice", computed: "id * 2" }], ...more });

  test("gets a job for new rows when SQL computes it", async () => {
    const id = await createFilms(catalog);
    expect((await addComputed(id, { auto_refresh_enabled: true })).status).toBe(200);
    expect(await jobsOn(id)).toEqual([]);
    for (let commit = 0; commit < 3; commit++) await append(id);
    expect(await jobsOn(id)).toMatchObject([
      { status: "Queued", parameters: { column: "twice" }, principal: "bootstrap" },
    ]);
  });

  test("has the options that lancedb 0.41 reads in the schema", async () => {
    const optionsOf = async (options: object) => {
      const id = await createFilms(catalog);
      await addComputed(id, options);
      const { fields } = (await catalog.call("remoteDescribeTable", { id })).body.schema;
      return Object.entries(fields.at(-1)?.metadata ?? {}).filter(([key]) => key.startsWith("computed_column.auto"));
    };
    const enabled = ["computed_column.auto_refresh_enabled", "true"];
    expect(await optionsOf({ auto_refresh_enabled: true })).toEqual([enabled]);
    expect(await optionsOf({ auto_refresh_enabled: true, auto_refresh_interval_seconds: 60 })).toEqual([
      enabled,
      ["computed_column.auto_refresh_interval_seconds", "60"],
    ]);
    for (const options of [{}, { auto_refresh_enabled: false }])
      expect(await optionsOf(options)).toEqual([["computed_column.auto_refresh_enabled", "false"]]);
  });

  test("gets a job for new rows when a Function computes it", async () => {
    const id = await createFilms(catalog);
    const signature = { inputs: [{ name: "value", arrow_type: "float64", nullable: true }] };
    const version = await registerFunction(catalog, [id[0] ?? "", "f"], { signature });
    const added = await catalog.call("remoteAlterTableAddColumns", {
      id,
      ...functionColumns(version, { value: "id" }, { $value: "value" }),
      auto_refresh_enabled: true,
    });
    expect(added.status).toBe(200);
    await append(id);
    const parameters = { column: "value", function_binding: expect.any(String) };
    expect(await jobsOn(id)).toMatchObject([{ status: "Queued", parameters }]);
  });

  test("gets no job where the request or the operator has switched automatic refreshes off", async () => {
    const id = await createFilms(catalog);
    await addComputed(id, { auto_refresh_enabled: false });
    await append(id);
    expect(await jobsOn(id)).toEqual([]);

    const off = await startTestCatalog({ TILTYARD_AUTOMATION_DELAY: "9d" });
    const asked = await createFilms(off);
    expect((await addComputed(asked, { auto_refresh_enabled: true }, off)).status).toBe(200);
    await append(asked, off);
    await doWorkOf(off.database, { autoRefresh: false });
    expect((await off.call("listJobs", { table: asked.join("$") })).body.jobs).toEqual([]);
    const { error } = await addComputed(asked, { auto_refresh_enabled: true, auto_refresh_interval_seconds: 60 }, off);
    expect(error).toMatchObject({ status: 400, detail: expect.stringContaining("TILTYARD_AUTO_REFRESH=on") });
    await off.stop();
  });

  test("gets its next job no sooner than its interval after the last one was opened", async () => {
    const prompt = await startTestCatalog({ TILTYARD_AUTOMATION_DELAY: "0", TILTYARD_AUTO_REFRESH: "on" });
    const id = await createFilms(prompt);
    await addComputed(id, { auto_refresh_enabled: true, auto_refresh_interval_seconds: 2 }, prompt);
    const list = async () => (await prompt.call("listJobs", { table: id.join("$") })).body.jobs;
    await append(id, prompt);
    await expect.poll(list).toHaveLength(1);
    const [{ job_id = "" } = {}] = await list();
    const actions = [{ setStatusAction: { status: "Canceled" } }];
    await prompt.call("alterTransaction", { id: job_id.split("$"), actions });
    await append(id, prompt);
    await expect.poll(list).toHaveLength(2);
    const [second, first] = (await list()).map((job) => job.created_at_millis);
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThan(1_900);
    await prompt.stop();
  });
});

describe("the schedule of automatic refreshes", () => {
  const addTwice = (id: readonly string[], more: object = {}) =>
    catalog.call("remoteAlterTableAddColumns", {
      id,
      new_columns: [{ name: "twice", computed: "id * 2" }],
      auto_refresh_enabled: true,
      ...more,
    });

  test("delays the jobs of a table's columns, which run once for all times that were missed", async () => {
    const id = await createAutomatic();
    await addTwice(id);
    await putSchedule(id);
    for (let commit = 0; commit < 3; commit++) await append(id);
    expect(await jobsOn(id)).toEqual([]);
    const next_at_millis = Date.UTC(new Date().getUTCFullYear() + 1, 0, 1, 2);
    const { body } = await catalog.call("describeTablePolicy", { id });
    expect(body).toMatchObject({ scheduled: [{ policy: "auto_refresh", next_at_millis }], problems: [] });

    await moveToPast(3 * 366);
    const columns = async () => (await jobsOn(id)).map(({ column }) => column).toSorted();
    expect(await columns()).toEqual(["length", "twice"]);
    for (const { job_id } of await jobsOn(id)) await end(job_id, "Running", "Succeeded");
    await append(id);
    expect(await columns()).toEqual(["length", "twice"]);
  });

  test("does not shorten the interval of a column", async () => {
    const id = await createFilms(catalog);
    await addTwice(id, { auto_refresh_interval_seconds: 3 * 86_400 });
    await putSchedule(id, { auto_refresh: { schedule: { cron: "* * * * *" } } });
    await append(id);
    await moveToPast(2);
    expect(await jobsOn(id)).toEqual([]);
    await moveToPast(2);
    expect(await jobsOn(id)).toMatchObject([{ column: "twice" }]);
  });

  test("opens the job of a column although the clock was ahead when the latest one was opened", async () => {
    const id = await createFilms(catalog);
    await addTwice(id, { auto_refresh_interval_seconds: 60 });
    await putSchedule(id);
    await append(id);
    expect(await jobsOn(id)).toEqual([]);
    await moveToPast(-3 * 366);
    expect(await jobsOn(id)).toMatchObject([{ column: "twice" }]);
  });

  test("names what is missing where nothing is refreshed automatically", async () => {
    const id = await createFilms(catalog);
    await putSchedule(id);
    const problems = async () => (await catalog.call("describeTablePolicy", { id })).body.problems;
    const problem = expect.stringMatching(/^nothing is refreshed automatically: .* TILTYARD_AUTO_REFRESH=on/);
    expect(await problems()).toEqual([{ policy: "auto_refresh", problem }]);
    await addTwice(id);
    expect(await problems()).toEqual([]);
  });

  test("is rejected without a time in the future", async () => {
    const id = await createFilms(catalog);
    const auto_refresh = { schedule: { cron: "0 0 31 2,4 *" } };
    const { error } = await catalog.call("putTablePolicy", { id, auto_refresh });
    expect(error).toMatchObject({ status: 400, detail: "auto_refresh.schedule.cron: has no time in the future" });
  });
});

describe("a view with auto_refresh", () => {
  const output_schema = Buffer.from(arrowStream([])).toString("base64");

  test("gets a job when its source has new rows, as long as both exist", async () => {
    const id = await createFilms(catalog);
    const view = [...id.slice(0, -1), "view"];
    const source_query = JSON.stringify({ base: {}, source_table: id.join("$") });
    const request = { kind: "query", source_query, output_schema, auto_refresh: true };
    expect((await catalog.call("createMaterializedView", { id: view, ...request })).status).toBe(201);
    await doDeferredWork();
    expect(await jobsOn(view)).toEqual([]);
    await append(id);
    const [job] = await jobsOn(view);
    expect(job).toMatchObject({ operation: "RefreshMaterializedView", status: "Queued", principal: "bootstrap" });
    await end(job?.job_id ?? "", "Running", "Succeeded");
    await catalog.call("dropTable", { id: view });
    await append(id);
    expect(await jobsOn(view)).toHaveLength(1);
  });

  test("gets a job after its undrop for the rows that arrived meanwhile", async () => {
    const keeping = await startTestCatalog({ TILTYARD_AUTOMATION_DELAY: "9d", TILTYARD_DROP_RETENTION: "1h" });
    const work = () => doWorkOf(keeping.database, { dropRetentionMs: 3_600_000 });
    try {
      const id = await createFilms(keeping);
      const view = [...id.slice(0, -1), "view"];
      const source_query = JSON.stringify({ base: {}, source_table: id.join("$") });
      const request = { kind: "query", source_query, output_schema, auto_refresh: true };
      expect((await keeping.call("createMaterializedView", { id: view, ...request })).status).toBe(201);
      await keeping.call("dropTable", { id: view });
      await append(id, keeping);
      await work();
      const [dropped] = (await keeping.call("listDroppedTables", { id: id.slice(0, -1) })).body.dropped_tables;
      await keeping.call("undropTable", { id: view, dropped_id: dropped?.dropped_id });
      await work();
      const { jobs } = (await keeping.call("listJobs", { table: view.join("$") })).body;
      expect(jobs).toMatchObject([{ operation: "RefreshMaterializedView" }]);
    } finally {
      await keeping.stop();
    }
  });

  test("gets a job for the rows that arrived while its source had another name", async () => {
    const id = await createFilms(catalog);
    const [view, other] = ["view", "other"].map((name) => [...id.slice(0, -1), name]) as [string[], string[]];
    const source_query = JSON.stringify({ base: {}, source_table: id.join("$") });
    const request = { kind: "query", source_query, output_schema, auto_refresh: true };
    expect((await catalog.call("createMaterializedView", { id: view, ...request })).status).toBe(201);
    await catalog.call("renameTable", { id, new_table_name: "other" });
    await append(other);
    expect(await jobsOn(view)).toEqual([]);
    await catalog.call("renameTable", { id: other, new_table_name: id.at(-1) });
    expect(await jobsOn(view)).toMatchObject([{ operation: "RefreshMaterializedView", status: "Queued" }]);
  });

  test("gets its job at the next time of its own schedule", async () => {
    const id = await createFilms(catalog);
    const view = [...id.slice(0, -1), "view"];
    const source_query = JSON.stringify({ base: {}, source_table: id.join("$") });
    const request = { kind: "query", source_query, output_schema, auto_refresh: true };
    expect((await catalog.call("createMaterializedView", { id: view, ...request })).status).toBe(201);
    await putSchedule(view);
    await append(id);
    expect(await jobsOn(view)).toEqual([]);
    // The source has no schedule, and its policy has no effect on the view.
    await putSchedule(view, {});
    expect(await jobsOn(view)).toMatchObject([{ operation: "RefreshMaterializedView", status: "Queued" }]);
  });

  test("gets no job for another source, which a writer of the view could choose", async () => {
    const [id, secret] = [await createFilms(catalog), await createFilms(catalog)];
    const view = [...id.slice(0, -1), "view"];
    const queryOf = (source: string[]) => JSON.stringify({ base: {}, source_table: source.join("$") });
    const request = { kind: "query", source_query: queryOf(id), output_schema, auto_refresh: true };
    expect((await catalog.call("createMaterializedView", { id: view, ...request })).status).toBe(201);
    const key = await catalog.keyFor("writer-of-view", { [id[0] ?? ""]: "writer", [secret[0] ?? ""]: "reader" });
    const replaced = { id: view, metadata: viewMetadata(secret) };
    expect((await catalog.call("updateTableSchemaMetadata", replaced, { key })).status).toBe(200);
    await append(id);
    expect(await jobsOn(view)).toEqual([]);
  });

  test("opens a job for a column despite a view whose job is rejected", async () => {
    const id = await createFilms(catalog);
    const [broken, view] = ["broken", "view"].map((name) => [...id.slice(0, -1), name]) as [string[], string[]];
    const source_query = JSON.stringify({ base: {}, source_table: id.join("$") });
    const request = { kind: "query", source_query, output_schema, auto_refresh: true };
    for (const each of [broken, view]) await catalog.call("createMaterializedView", { ...request, id: each });
    const replaced = { id: broken, metadata: viewMetadata(view) };
    expect((await catalog.call("updateTableSchemaMetadata", replaced)).status).toBe(200);
    await append(id);
    expect(await jobsOn(view)).toHaveLength(1);
    expect(await jobsOn(broken)).toEqual([]);
  });
});

test("a job is opened by the catalog itself, soon after the commit", async () => {
  const prompt = await startTestCatalog({ TILTYARD_AUTOMATION_DELAY: "0" });
  try {
    const id = await createAutomatic(prompt);
    await append(id, prompt);
    const list = async () => (await prompt.call("listJobs", { table: id.join("$") })).body.jobs;
    await expect.poll(list).toHaveLength(1);
  } finally {
    await prompt.stop();
  }
});

test.each([
  [
    "has lost the role",
    (id: readonly string[]) => catalog.call("revokeGrant", { id: id.slice(0, 1), principal: "leaver" }),
  ],
  [
    "has lost its last key",
    async () => {
      const { api_keys } = (await catalog.call("listApiKeys", { principal: "leaver" })).body;
      for (const { api_key_id } of api_keys) await catalog.call("revokeApiKey", { api_key_id });
    },
  ],
])("a column with auto_backfill gets no job any more when its principal %s", async (_, leave) => {
  const id = await createFilms(catalog);
  const key = await catalog.keyFor("leaver", { [id[0] ?? ""]: "writer" });
  const request = { id, new_columns: [{ name: "length", virtual_column }] };
  expect((await catalog.call("alterTableAddColumns", request, { key })).status).toBe(200);
  await append(id);
  const [job] = await jobsOn(id);
  expect(job).toMatchObject({ principal: "leaver", status: "Queued" });
  await end(job?.job_id ?? "", "Canceled");
  await leave(id);
  await append(id);
  expect((await jobsOn(id)).filter(({ status }) => status === "Queued")).toEqual([]);
});

test("a column with auto_backfill keeps its jobs although the process that reads its table has crashed", async () => {
  const id = await createAutomatic();
  await append(id);
  await using store = await openStore(catalog.database);
  const storage = createStorage({ s3ForcePathStyle: false });
  const log = createLog("silent");
  const crashed = new CatalogError("InvalidInput", "the process crashed", { cause: new ChildEnded("ended") });
  const deps = {
    ...{ store, storage, finishing: createFinishing({ store, storage, log }), log },
    ...{ automationDelayMs: 0, autoRefresh: true, rayClusters: [] },
    openJobMaxima: { perPrincipal: 10, perNamespace: 10 },
    rows: { read: () => Promise.reject(crashed) } as unknown as Rows,
  };
  const { id: tableId } = await requireTable(store.read, id);
  await expect(openDueJobs(deps, String(tableId))).rejects.toBe(crashed);
  expect(await jobsOn(id)).toMatchObject([{ status: "Queued", column: "length" }]);
});

describe("an automation exists from the commit of its cause on", () => {
  /** Starts a catalog whose database fails after an operation was recorded, until `recover`. */
  async function startFailingAfter(operation: string) {
    let fails = false;
    let isRecovered = false;
    const wrapStore = (store: Store): Store => {
      const write = store.write.bind(store);
      return Object.assign(store, {
        write: async (...args: Parameters<typeof write>) => {
          if (fails) throw new CatalogError("ServiceUnavailable", "the database fails");
          const result = await write(...args);
          const audit = store.read.db.selectFrom("auditRecords").select("id").where("operation", "=", operation);
          fails = !isRecovered && (await audit.executeTakeFirst()) !== undefined;
          return result;
        },
      });
    };
    const failing = await startTestCatalog({ TILTYARD_AUTOMATION_DELAY: "9d" }, { wrapStore });
    const recover = () => {
      isRecovered = true;
      fails = false;
    };
    return { failing, recover };
  }

  test("when the database fails after a view was created", async () => {
    const { failing, recover } = await startFailingAfter("CreateMaterializedView");
    const id = await createFilms(failing);
    const view = [...id.slice(0, -1), "view"];
    const source_query = JSON.stringify({ base: {}, source_table: id.join("$") });
    const output_schema = Buffer.from(arrowStream([])).toString("base64");
    const request = { id: view, kind: "query", source_query, output_schema, auto_refresh: true, with_no_data: false };
    const { job_id } = (await failing.call("createMaterializedView", request)).body;
    recover();
    const list = async () => (await failing.call("listJobs", { table: view.join("$") })).body.jobs;
    expect(await list()).toMatchObject([{ job_id, status: "Queued" }]);
    const actions = [{ setStatusAction: { status: "Canceled" } }];
    await failing.call("alterTransaction", { id: job_id?.split("$"), actions });
    await append(id, failing);
    await doWorkOf(failing.database);
    expect(await list()).toHaveLength(2);
    await failing.stop();
  });

  test("when the database fails after a column was added", async () => {
    const { failing, recover } = await startFailingAfter("AlterTableAddColumns");
    const id = await createAutomatic(failing);
    recover();
    await append(id, failing);
    await doWorkOf(failing.database);
    const { jobs } = (await failing.call("listJobs", { table: id.join("$") })).body;
    expect(jobs).toMatchObject([{ principal: "bootstrap" }]);
    await failing.stop();
  });
});

test("a new view is refreshed for rows that were added to its source during its creation", async () => {
  let source: readonly string[] | undefined;
  const wrapStorage = (storage: Storage): Storage => ({
    at: async (location) => {
      const store = await storage.at(location);
      const persist: typeof store.persist = async (...args) => {
        const id = location.uri.includes("/view-") ? source : undefined;
        if (id === undefined) return store.persist(...args);
        source = undefined;
        expect((await append(id, own)).status).toBe(200);
        return store.persist(...args);
      };
      return { ...store, persist };
    },
  });
  const own = await startTestCatalog({ TILTYARD_AUTOMATION_DELAY: "9d" }, { wrapStorage });
  const id = await createFilms(own);
  const view = [...id.slice(0, -1), "view"];
  const source_query = JSON.stringify({ base: {}, source_table: id.join("$") });
  const output_schema = Buffer.from(arrowStream([])).toString("base64");
  const request = { id: view, kind: "query", source_query, output_schema, auto_refresh: true };
  source = id;
  expect((await own.call("createMaterializedView", request)).status).toBe(201);
  expect(source).toBeUndefined();
  await doWorkOf(own.database);
  const { jobs } = (await own.call("listJobs", { table: view.join("$") })).body;
  expect(jobs).toMatchObject([{ operation: "RefreshMaterializedView", status: "Queued" }]);
  await own.stop();
});
