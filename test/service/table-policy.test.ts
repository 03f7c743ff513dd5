import { tableFromJSON } from "apache-arrow";
import { describe, expect, test } from "vitest";
import { commit, declareTable, uniqueName, useCatalog } from "../support/catalog.ts";
import { executeSql } from "../support/database.ts";
import { useDeferredWork } from "../support/deferred-work.ts";
import { arrowStream, createFilms, films } from "../support/rows.ts";

/** The delay of the catalog itself exceeds the duration of these tests. */
const catalog = useCatalog({ TILTYARD_AUTOMATION_DELAY: "9d" });
const doDeferredWork = useDeferredWork(catalog);

const put = (id: readonly string[], policy: object) => catalog.call("putTablePolicy", { id, ...policy });
const propertiesOf = async (id: readonly string[]) => (await catalog.call("describeTable", { id })).body.properties;

/** Creates a table with a field in a struct, and with names that need backticks. */
async function createNested(): Promise<string[]> {
  const id = [(await createFilms(catalog))[0] ?? "", uniqueName("nested")];
  const body = arrowStream([tableFromJSON([{ "x y": 1, Cased: 1, s: { k: 1, "d.e": 1 } }])]);
  expect((await catalog.call("createTable", { id }, { body })).status).toBe(200);
  return id;
}

async function append(id: readonly string[], times: number): Promise<void> {
  for (let commit = 0; commit < times; commit++)
    expect((await catalog.call("insertIntoTable", { id }, { body: arrowStream(films) })).status).toBe(200);
}

/** Returns the jobs that the catalog has opened automatically with their statuses, the latest first. */
async function jobsOn(id: readonly string[]) {
  await doDeferredWork();
  const { jobs } = (await catalog.call("listJobs", { table: id.join("$") })).body;
  const described = jobs.map(({ job_id }) => catalog.call("describeJob", { id: job_id.split("$") }));
  return (await Promise.all(described)).map(({ body }) => body.job);
}

async function end(job: string | undefined, ...statuses: readonly string[]) {
  const actions = statuses.map((status) => ({ setStatusAction: { status } }));
  expect((await catalog.call("alterTransaction", { id: job?.split("$") ?? [], actions })).status).toBe(200);
}

describe("a table's policy", () => {
  test("opens a compaction when that many fragments are small, one at a time, for the principal that set it", async () => {
    const ann = await catalog.keyFor("ann", { $: "writer" });
    const id = await createFilms(catalog);
    const policy = { auto_compact: { small_fragments: 3, target_rows_per_fragment: 4, concurrency: 2 } };
    expect((await catalog.call("putTablePolicy", { id, ...policy }, { key: ann })).status).toBe(200);
    await append(id, 1);
    expect(await jobsOn(id)).toEqual([]);
    await append(id, 3);
    const [first, ...others] = await jobsOn(id);
    expect(others).toEqual([]);
    expect(first).toMatchObject({
      operation: "CompactTable",
      status: "Queued",
      principal: "ann",
      parameters: { target_rows_per_fragment: 4, concurrency: 2 },
    });
    await end(first?.job_id, "Running");
    await append(id, 1);
    expect(await jobsOn(id)).toHaveLength(1);
    await end(first?.job_id, "Succeeded");
    const [second] = await jobsOn(id);
    expect(second?.status).toBe("Queued");
    await end(second?.job_id, "Running", "Succeeded");
    // Fragments skipped by one compaction are skipped by the next.
    await catalog.call("alterTableAlterColumns", { id, alterations: [{ path: "title", rename: "name" }] });
    expect(await jobsOn(id)).toHaveLength(2);
  });

  test("opens no job on a table that Lance's clients cannot name", async () => {
    const id = await createFilms(catalog);
    await put(id, { auto_compact: { small_fragments: 2 } });
    const renamed = [uniqueName("$a$"), "films"];
    const byMark = { delimiter: "!" };
    expect((await catalog.call("createNamespace", { id: renamed.slice(0, 1) }, byMark)).status).toBe(200);
    const to = { new_namespace_id: renamed.slice(0, 1), new_table_name: "films" };
    expect((await catalog.call("renameTable", { id, ...to }, byMark)).status).toBe(200);
    for (let commit = 0; commit < 3; commit++)
      await catalog.call("insertIntoTable", { id: renamed }, { ...byMark, body: arrowStream(films) });
    await doDeferredWork();
    expect((await catalog.call("listJobs", { id: renamed.slice(0, 1) }, byMark)).body.jobs).toEqual([]);
    expect((await catalog.call("countTableRows", { id: renamed }, byMark)).body).toBe(4 * films.length);
  });

  test("counts fragments as small without their deleted rows", async () => {
    const id = await createFilms(catalog);
    await put(id, { auto_compact: { small_fragments: 2, target_rows_per_fragment: 3 } });
    await append(id, 2);
    expect(await jobsOn(id)).toEqual([]);
    await catalog.call("deleteFromTable", { id, predicate: "id = 1" });
    await append(id, 1);
    expect(await jobsOn(id)).toMatchObject([{ operation: "CompactTable" }]);
  });

  test("opens an index's job for so many new fragments", async () => {
    const id = await createFilms(catalog);
    await put(id, { auto_build_index: [{ column: "id", name: "by_id", index_type: "BTREE", new_fragments: 2 }] });
    expect(await jobsOn(id)).toEqual([]);
    await append(id, 1);
    const [first] = await jobsOn(id);
    const parameters = { column: "id", index_type: "BTREE", name: "by_id" };
    expect(first).toMatchObject({ operation: "BuildTableIndex", status: "Queued", parameters });
    await end(first?.job_id, "Running", "Succeeded");
    await append(id, 1);
    expect(await jobsOn(id)).toHaveLength(1);
    await append(id, 1);
    expect(await jobsOn(id)).toHaveLength(2);
  });

  test("opens the job of a nested or quoted column with the path that Lance lists", async () => {
    const id = await createNested();
    const fields = { index_type: "btree", new_fragments: 1 };
    const policy = ["`s`.`k`", "`x y`", "s.`d.e`", "CASED"].map((column) => ({ column, ...fields }));
    expect((await put(id, { auto_build_index: policy })).status).toBe(200);
    const jobs = await jobsOn(id);
    expect(jobs.map(({ column }) => column).toSorted()).toEqual(["Cased", "s.`d.e`", "s.k", "x y"]);
    expect((await catalog.call("describeTablePolicy", { id })).body).toMatchObject({ problems: [] });
  });

  test.each([
    [{ column: "later", index_type: "BTREE" }, 404, "has no column later"],
    [{ column: "s.later", index_type: "BTREE" }, 404, "has no column s.later"],
    [{ column: "s..k", index_type: "BTREE" }, 404, "has no column s..k"],
    [{ column: "`s.k`", index_type: "BTREE" }, 404, "has no column `s.k`"],
    [{ column: "s.k", index_type: "SOON" }, 400, "index_type: must be one of BTREE, "],
    [{ column: "s.k", index_type: "IVF_PQ" }, 400, "column: a job cannot build IVF_PQ on vectors in a struct"],
  ])("is rejected for the index %j, like the request that opens its job", async (index, status, detail) => {
    const id = await createNested();
    for (const { error } of [
      await catalog.call("buildTableIndex", { id, ...index } as never),
      await put(id, { auto_build_index: [{ ...index, new_fragments: 1 }] }),
    ])
      expect(error).toMatchObject({ status, detail: expect.stringContaining(detail) });
  });

  test("has one part for each column, however its path is written", async () => {
    const id = await createNested();
    const fields = { index_type: "BTREE", new_fragments: 1 };
    const policy = [
      { column: "s.k", ...fields },
      { column: "`s`.k", ...fields },
    ];
    const { error } = await put(id, { auto_build_index: policy });
    expect(error).toMatchObject({ status: 400, detail: "auto_build_index: must have one policy for each column" });
  });

  test("lists why a job cannot be opened, and opens it as soon as it can", async () => {
    const ann = await catalog.keyFor("ann", { $: "writer" });
    const id = await createNested();
    const policy = {
      auto_build_index: [{ column: "s.k", index_type: "BTREE", new_fragments: 1 }],
      auto_clean_up: { versions: 3 },
    };
    expect((await catalog.call("putTablePolicy", { id, ...policy }, { key: ann })).status).toBe(200);
    const problems = async () => (await catalog.call("describeTablePolicy", { id })).body.problems;
    expect(await problems()).toEqual([]);
    const rename = async (path: string, name: string) =>
      expect((await catalog.call("alterTableAlterColumns", { id, alterations: [{ path, rename: name }] })).status).toBe(
        200,
      );
    await rename("s", "t");
    expect(await jobsOn(id)).toEqual([]);
    const problem = `table ${id.join("$")} has no column s.k`;
    expect(await problems()).toEqual([{ policy: "auto_build_index", column: "s.k", problem }]);
    await catalog.call("putGrant", { id: [], principal: "ann", role: "reader" });
    await rename("t", "u");
    expect(await jobsOn(id)).toEqual([]);
    const role = expect.stringMatching(/^ann needs the role writer on /);
    expect(await problems()).toEqual([
      { policy: "auto_build_index", column: "s.k", problem: role },
      { policy: "auto_clean_up", problem: role },
    ]);
    await catalog.call("putGrant", { id: [], principal: "ann", role: "writer" });
    await rename("u", "s");
    expect(await problems()).toEqual([]);
    expect((await jobsOn(id)).map(({ operation }) => operation).toSorted()).toEqual([
      "BuildTableIndex",
      "CleanUpTable",
    ]);
  });

  test("names only clusters in the runner's file", async () => {
    const id = await createFilms(catalog);
    const problem = 'cluster: "big" is not one of the runner\'s in TILTYARD_RAY_CLUSTERS: default';
    for (const policy of [
      { auto_compact: { small_fragments: 2, cluster: "big" } },
      { auto_build_index: [{ column: "id", index_type: "BTREE", new_fragments: 1, cluster: "big" }] },
      { auto_clean_up: { versions: 1, cluster: "big" } },
    ])
      expect((await put(id, policy)).error).toMatchObject({ status: 400, detail: problem });
    expect((await put(id, { auto_compact: { small_fragments: 2, cluster: "default" } })).status).toBe(200);

    const properties = JSON.stringify({ auto_clean_up: JSON.stringify({ versions: 1, cluster: "big" }) });
    const created = [...id.slice(0, -1), "created"];
    await catalog.call("createTable", { id: created, properties }, { body: arrowStream(films) });
    await append(created, 1);
    expect(await jobsOn(created)).toEqual([]);
    const { problems } = (await catalog.call("describeTablePolicy", { id: created })).body;
    expect(problems).toEqual([{ policy: "auto_clean_up", problem }]);
  });

  test("opens a due job at the next time of its schedule", async () => {
    const id = await createFilms(catalog);
    const schedule = { cron: "0 3 1 1 *", time_zone: "Europe/Berlin" };
    expect((await put(id, { auto_compact: { small_fragments: 2, schedule } })).status).toBe(200);
    await append(id, 3);
    expect(await jobsOn(id)).toEqual([]);
    const { policy, scheduled } = (await catalog.call("describeTablePolicy", { id })).body;
    expect(policy).toEqual({ auto_compact: { small_fragments: 2, schedule } });
    const next_at_millis = Date.UTC(new Date().getUTCFullYear() + 1, 0, 1, 2);
    expect(scheduled).toEqual([{ policy: "auto_compact", next_at_millis }]);

    // The same happened three years ago, and the catalog has been down since.
    const yearsMillis = 3 * 366 * 86_400_000;
    for (const [table, column] of [
      ["automations", "since_millis"],
      ["table_versions", "timestamp_millis"],
    ])
      await executeSql(catalog.database, `update ${table} set ${column} = ${column} - ${yearsMillis}`);
    const [first, ...others] = await jobsOn(id);
    expect(first).toMatchObject({ operation: "CompactTable", status: "Queued" });
    expect(others).toEqual([]);
    await end(first?.job_id, "Running", "Succeeded");
    // It is due again, before its next time.
    await append(id, 3);
    expect(await jobsOn(id)).toHaveLength(1);
  });

  test.each([
    [{ cron: "60 * * * *" }, "schedule.cron: must be five fields of cron"],
    [{ cron: "* * * * * *" }, "schedule.cron: must be five fields of cron"],
    [{ cron: "0 0 30 2 *" }, "schedule.cron: has no time in the future"],
    [{ cron: "@daily", time_zone: "Mars/Olympus" }, "schedule.time_zone: must be an IANA time zone"],
  ])("is rejected with the schedule %j", async (schedule, detail) => {
    const id = await createFilms(catalog);
    const { error } = await put(id, { auto_clean_up: { versions: 1, schedule } });
    expect(error).toMatchObject({ status: 400, detail: expect.stringContaining(detail) });
  });

  test("may name a column before the first version of its table", async () => {
    const id = [(await createFilms(catalog))[0] ?? "", uniqueName("table")];
    await catalog.call("declareTable", { id });
    const index = { column: "later", index_type: "BTREE", new_fragments: 1 };
    expect((await put(id, { auto_build_index: [index] })).status).toBe(200);
    expect((await catalog.call("describeTablePolicy", { id })).body).toMatchObject({ problems: [] });
  });

  test("opens a clean-up for every so many versions", async () => {
    const id = await createFilms(catalog);
    await append(id, 2);
    await put(id, { auto_clean_up: { versions: 3, older_than_seconds: 0, keep_versions: 2 } });
    const [first] = await jobsOn(id);
    const parameters = { older_than_seconds: 0, keep_versions: 2 };
    expect(first).toMatchObject({ operation: "CleanUpTable", parameters });
    await end(first?.job_id, "Running", "Succeeded");
    await append(id, 2);
    expect(await jobsOn(id)).toHaveLength(1);
    await append(id, 1);
    expect(await jobsOn(id)).toHaveLength(2);
  });

  test("is in the table's properties until it is replaced or removed", async () => {
    const id = [(await createFilms(catalog))[0] ?? "", uniqueName("table")];
    await catalog.call("declareTable", { id, properties: { owner: "ann" } });
    const clean_up = { versions: 2, older_than_seconds: 0 };
    const answer = await put(id, { auto_compact: { small_fragments: 2 }, auto_clean_up: clean_up });
    expect(answer.body.transaction_id).toBeTypeOf("string");
    await put(id, { auto_clean_up: clean_up });
    expect(await propertiesOf(id)).toEqual({ owner: "ann", auto_clean_up: JSON.stringify(clean_up) });
    await put(id, {});
    expect(await propertiesOf(id)).toEqual({ owner: "ann" });
    const { transactions } = (await catalog.call("listTransactions", { table: id.join("$") })).body;
    expect(transactions.filter(({ operation }) => operation === "PutTablePolicy")).toHaveLength(3);
    expect((await put([...id, "missing"], {})).error).toMatchObject({ status: 404, code: 4 });
  });

  test("opens no more jobs after its removal", async () => {
    const id = await createFilms(catalog);
    await put(id, { auto_clean_up: { versions: 2 } });
    await put(id, {});
    await append(id, 3);
    expect(await jobsOn(id)).toEqual([]);
  });

  test("is set at the creation of a table, in every way to create one", async () => {
    const properties = { auto_clean_up: JSON.stringify({ versions: 2 }) };
    const [namespace] = await createFilms(catalog);
    const created = [namespace ?? "", uniqueName("table")];
    const body = arrowStream(films);
    const made = { id: created, properties: JSON.stringify(properties) };
    expect((await catalog.call("createTable", made, { body })).status).toBe(200);
    const { location } = (await catalog.call("describeTable", { id: created })).body;
    await append(created, 2);
    expect(await jobsOn(created)).toMatchObject([{ operation: "CleanUpTable", principal: "bootstrap" }]);
    await catalog.call("deregisterTable", { id: created });
    const registered = [namespace ?? "", uniqueName("table")];
    expect((await catalog.call("registerTable", { id: registered, location, properties })).status).toBe(200);
    // The catalog itself checks registered tables immediately, so the test waits for it.
    await expect.poll(() => jobsOn(registered)).toMatchObject([{ operation: "CleanUpTable" }]);
    // An overwrite replaces all properties of the table.
    const overwrite = { id: registered, mode: "Overwrite", properties: JSON.stringify({ owner: "ann" }) };
    await catalog.call("createTable", overwrite, { body });
    await append(registered, 3);
    expect(await jobsOn(registered)).toHaveLength(1);
  });

  test.each([
    [{ auto_compact: "yes" }, "properties.auto_compact: is not JSON"],
    [{ auto_compact: "{}" }, "properties.auto_compact.small_fragments: "],
    [{ auto_clean_up: '{"versions": 5, "older": 1}' }, "properties.auto_clean_up: has no field older"],
  ])("is refused in %j, and nothing is created", async (properties, detail) => {
    const id = [(await createFilms(catalog))[0] ?? "", uniqueName("table")];
    for (const answer of [
      await catalog.call("declareTable", { id, properties }),
      await catalog.call("createTable", { id, properties: JSON.stringify(properties) }, { body: arrowStream(films) }),
      await catalog.call("batchCommitTables", { operations: [{ declare_table: { id, properties } }] }),
    ])
      expect(answer.error).toMatchObject({ status: 400, detail: expect.stringContaining(detail) });
    expect((await catalog.call("describeTable", { id })).status).toBe(404);
  });

  test.each([
    [{ auto_compact: { small_fragments: 1 } }, "auto_compact.small_fragments: "],
    [{ auto_build_index: [{ column: "id", index_type: "BTREE" }] }, "auto_build_index.0.new_fragments: "],
  ])("is refused as %j", async (policy, detail) => {
    const id = await createFilms(catalog);
    expect((await put(id, policy)).error).toMatchObject({ status: 400, detail: expect.stringContaining(detail) });
  });
});

test("maintenance of a table is refused on a branch, because jobs work on main", async () => {
  const id = await createFilms(catalog);
  const refused = { status: 400, detail: "branch: jobs only change main" };
  for (const answer of [
    await catalog.call("compactTable", { id, branch: "side" }),
    await catalog.call("buildTableIndex", { id, branch: "side", column: "id", index_type: "BTREE" }),
    await catalog.call("cleanUpTable", { id, branch: "side" }),
  ])
    expect(answer.error).toMatchObject(refused);
  expect((await catalog.call("compactTable", { id, branch: "main" })).status).toBe(202);
});

test("the policy of a table with a fragment that cannot be read is described with that problem", async () => {
  const table = await declareTable(catalog);
  // The only fragment has a field without its value.
  const manifest = [0x12, 0x01, 0x08];
  const content = Buffer.from([manifest.length, 0, 0, 0, ...manifest, ...Array(12).fill(0), ...Buffer.from("LANC")]);
  expect((await commit(catalog, table, 1, { content })).status).toBe(200);
  await put(table.id, { auto_compact: { small_fragments: 2 } });
  const { problems } = (await catalog.call("describeTablePolicy", { id: table.id })).body;
  expect(problems).toMatchObject([{ policy: "auto_compact", problem: expect.stringContaining("it cannot be read") }]);
});
