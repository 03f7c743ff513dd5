import { tableFromArrays, tableToIPC } from "apache-arrow";
import { describe, expect, test } from "vitest";
import { beginAttempt, claimAttempt, finishAttempt, heartbeat } from "../support/attempts.ts";
import { declareTable, uniqueName, useCatalog } from "../support/catalog.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog();

/** A table with computed columns, for which jobs are asked. */
async function createComputed(...names: readonly string[]): Promise<string[]> {
  const id = await createFilms(catalog);
  const new_columns = names.map((name) => ({ name, computed: "id * 2" }));
  await catalog.call("alterTableAddColumns", { id, new_columns });
  return id;
}

async function backfill(id: readonly string[], column: string, more: object = {}) {
  return catalog.call("alterTableBackfillColumns", { id, column, ...more });
}

/** Creates a table with a column like those of Geneva's functions. */
async function createVirtual(name: string): Promise<string[]> {
  const id = await createFilms(catalog);
  await catalog.call("alterTableAddColumns", { id, new_columns: [{ name, expression: "cast(0 as int)" }] });
  await catalog.call("updateFieldMetadata", { id, updates: [{ path: name, metadata: { virtual_column: "true" } }] });
  return id;
}

async function alter(job: string, ...actions: readonly object[]) {
  expect((await catalog.call("alterTransaction", { id: job.split("$"), actions })).status).toBe(200);
}

const setStatus = (status: string) => ({ setStatusAction: { status } });
const set = (key: string, value: string) => ({ setPropertyAction: { key, value } });

describe("a backfill", () => {
  test.each([
    ["a column that is not there", { column: "missing" }, 404, /no column missing/],
    [
      "a column that nothing computes",
      { column: "title" },
      400,
      /title is not computed: add it with virtual_column or computed/,
    ],
    ["a condition that is none", { column: "twice", where: "id >" }, 400, /id >/],
    ["a condition with a text after its end", { column: "twice", where: "id > 1 limit 1" }, 400, /limit/],
    ["a condition on a column that is not there", { column: "twice", where: "missing > 1" }, 404, /missing/],
    ["a condition on a column that is filled as a whole", { column: "twice", where: "id > 1" }, 400, /Omit where/],
    ["some fragments of such a column", { column: "twice", num_frags: 1 }, 400, /Omit num_frags/],
    ["an option of Geneva for such a column", { column: "twice", batch_size: 10 }, 400, /Omit batch_size/],
    ["an error policy for such a column", { column: "twice", error_policy: "skip" }, 400, /Omit error_policy/],
    [
      "an unknown error policy",
      { column: "twice", error_policy: "retry" },
      400,
      /^error_policy: must be one of fail, skip/,
    ],
    [
      "a manifest that no runner accepts",
      { column: "twice", manifest: '{"pip": ["numpy"], "conda": {"dependencies": ["pip"]}}' },
      400,
      /^manifest: Ray installs packages either with pip or with conda/,
    ],
    ["an option without an effect", { column: "twice", error_store: "x" }, 400, /^error_store: is not the name/],
    ["an option that is no scalar", { column: "twice", skip_rows: [1] }, 400, /^skip_rows: must be a text/],
    ["a field that the catalog derives", { column: "twice", cluster_definition: "{}" }, 400, /^cluster_definition: /],
  ])("is refused at once for %s", async (_, request, status, message) => {
    const id = await createComputed("twice");
    const { error } = await catalog.call("alterTableBackfillColumns", { id, ...request });
    expect([error.status, error.detail]).toEqual([status, expect.stringMatching(message)]);
    expect((await catalog.call("listJobs", { id: id.slice(0, -1) })).body.jobs).toEqual([]);
  });

  test("keeps the error policy with the job, and refuses limits of skipped rows without it", async () => {
    const id = await createVirtual("length");
    for (const limit of [{ max_failed_rows: 3 }, { max_failed_fraction: 0.1, error_policy: "fail" }]) {
      const { error } = await backfill(id, "length", limit);
      expect([error.status, error.detail]).toEqual([400, expect.stringContaining('needs error_policy "skip"')]);
    }
    const policy = { error_policy: "skip", max_failed_rows: 3, max_failed_fraction: 0.1 };
    const { body } = await backfill(id, "length", policy);
    const { job } = (await catalog.call("describeJob", { id: body.job_id.split("$") })).body;
    expect(job.parameters).toMatchObject({ error_policy: "skip", max_failed_rows: 3, max_failed_fraction: 0.1 });
  });

  test("keeps the arguments of Geneva that the schema lacks with the job", async () => {
    const id = await createFilms(catalog);
    const metadata = { virtual_column: "true" };
    await catalog.call("alterTableAddColumns", { id, new_columns: [{ name: "length", expression: "cast(0 as int)" }] });
    await catalog.call("updateFieldMetadata", { id, updates: [{ path: "length", metadata }] });
    const options = { skip_frags: 100, use_cpu_only_pool: true, task_shuffle_diversity: 2, update_mode: "sparse" };
    const opened = await backfill(id, "length", { num_frags: 50, ...options, udf_tag: null });
    expect([opened.status, opened.headers.get("x-ignored-fields")]).toEqual([202, null]);
    const { parameters } = (await catalog.call("describeJob", { id: opened.body.job_id.split("$") })).body.job;
    expect(parameters).toEqual({ column: "length", num_frags: 50, options });
  });

  test("is the same job when it is requested again, also on a table with a comma in its name", async () => {
    const id = await createComputed("twice");
    const renamed = [...id.slice(0, -1), "],["];
    const to = { new_namespace_id: id.slice(0, -1), new_table_name: "],[" };
    expect((await catalog.call("renameTable", { id, ...to })).status).toBe(200);
    const first = await backfill(renamed, "twice");
    expect(first.body.job_id).toBeDefined();
    expect((await backfill(renamed, "twice")).body).toEqual(first.body);
  });

  test("is refused on a branch: jobs fill main", async () => {
    const id = await createComputed("twice");
    await catalog.call("createTableBranch", { id, name: "side" });
    expect((await backfill(id, "twice", { branch: "side" })).error).toMatchObject({
      status: 400,
      detail: "branch: jobs only change main",
    });
  });

  test("is refused for a table that Lance's clients cannot name: no job could open it", async () => {
    const id = await createComputed("twice");
    const named = [uniqueName("$a$"), "films"];
    const byMark = { delimiter: "!" };
    expect((await catalog.call("createNamespace", { id: named.slice(0, 1) }, byMark)).status).toBe(200);
    const to = { new_namespace_id: named.slice(0, 1), new_table_name: "films" };
    expect((await catalog.call("renameTable", { id, ...to }, byMark)).status).toBe(200);
    for (const operation of ["alterTableBackfillColumns", "compactTable"] as const)
      expect((await catalog.call(operation, { id: named, column: "twice" }, byMark)).error).toMatchObject({
        status: 400,
        detail: expect.stringContaining("so no job can open this table"),
      });
  });

  test("is the same job when it is requested again while it is open, and another one of the column is a conflict", async () => {
    const id = await createComputed("twice", "again");
    const answers = await Promise.all(Array.from({ length: 5 }, () => backfill(id, "twice", { concurrency: 2 })));
    const jobs = new Set(answers.map(({ body }) => body.job_id));
    expect(jobs.size).toBe(1);
    const [job = ""] = jobs;
    await beginAttempt(catalog, job);
    expect((await backfill(id, "twice", { concurrency: 2 })).body.job_id).toBe(job);
    const other = await backfill(id, "twice");
    expect([other.status, other.error.detail]).toEqual([409, expect.stringContaining(job)]);
    expect((await backfill(id, "again")).status).toBe(202);
    await alter(job, setStatus("Succeeded"));
    expect((await backfill(id, "twice")).status).toBe(202);
  });
});

describe("jobs that look after a table", () => {
  test.each([
    ["compactTable", "CompactTable", { target_rows_per_fragment: 1000 }],
    ["buildTableIndex", "BuildTableIndex", { column: "title", index_type: "BTREE" }],
    ["cleanUpTable", "CleanUpTable", { older_than_seconds: 0, keep_versions: 3 }],
  ] as const)("%s opens one, with the parameters of the request", async (name, operation, request) => {
    const id = await createFilms(catalog);
    const first = await catalog.call(name, { id, ...request });
    expect(first.status).toBe(202);
    const { job_id } = first.body;
    const { job } = (await catalog.call("describeJob", { id: job_id.split("$") })).body;
    expect(job).toMatchObject({ status: "Queued", operation, objects: [id], parameters: request, result: {} });
    expect((await catalog.call(name, { id, ...request })).body.job_id).toBe(job_id);
    expect((await catalog.call(name, { id, ...request, cluster: "default" })).error.status).toBe(409);
    await beginAttempt(catalog, job_id);
    await finishAttempt(catalog, job_id, { status: "Succeeded", result: { versions_deleted: 4 } });
    const ended = (await catalog.call("describeJob", { id: job_id.split("$") })).body.job;
    expect(ended).toMatchObject({ parameters: request, result: { versions_deleted: 4 } });
    expect((await catalog.call(name, { id: [...id.slice(0, -1), "missing"], ...request })).error.status).toBe(404);
  });

  test("build an index of an existing column, several columns at a time", async () => {
    const id = await createFilms(catalog);
    const index = (column: string) => catalog.call("buildTableIndex", { id, column, index_type: "BTREE" });
    expect((await index("missing")).error).toMatchObject({ status: 404, code: 12 });
    expect((await index("id")).body.job_id).not.toBe((await index("title")).body.job_id);
  });
});

describe("management of jobs", () => {
  test("describes parameters, progress and platform of a job separately", async () => {
    const id = await createComputed("twice");
    const { job_id } = (await backfill(id, "twice", { task_size: 100, concurrency: 4 })).body;
    const describe = async () => (await catalog.call("describeJob", { id: job_id.split("$") })).body.job;
    expect(await describe()).toMatchObject({ status: "Queued", attempt: 0, progress: {}, platform: {} });
    await beginAttempt(catalog, job_id, 2, { ray_address: "http://ray" });
    await heartbeat(catalog, job_id, { progress: { rows_committed: 5 }, log_tail: "one\ntwo" });
    expect(await describe()).toMatchObject({
      job_id,
      status: "Running",
      operation: "AlterTableBackfillColumns",
      objects: [id],
      parameters: { column: "twice", task_size: 100, concurrency: 4 },
      attempt: 2,
      heartbeat: expect.stringMatching(/^20\d\d-.*Z$/),
      progress: { rows_committed: 5 },
      platform: { ray_address: "http://ray" },
    });
    expect((await catalog.call("describeJobLog", { id: job_id.split("$") })).body.lines).toEqual(["one", "two"]);
  });

  test("lists the errors that Geneva recorded for a job, and none for others", async () => {
    const [a, b] = [await createComputed("twice"), await createComputed("twice")];
    const first = (await backfill(a, "twice")).body.job_id;
    const second = (await backfill(b, "twice")).body.job_id;
    const errorsOf = async (job: string) => (await catalog.call("listJobErrors", { id: job.split("$") })).body.errors;
    expect(await errorsOf(first)).toEqual([]);
    const records = tableFromArrays({
      error_type: ["ValueError", "TypeError"],
      error_message: ["x".repeat(2_000), "not of this job"],
      error_trace: [`Traceback${"\n".repeat(2_000)}ValueError`, ""],
      column_name: ["twice", "twice"],
      job_id: [first, "another"],
      fragment_id: [3, 4].map(BigInt),
      row_address: [null, 4n],
      attempt: [1, 1].map(BigInt),
      timestamp: [new Date(1_000), new Date(2_000)],
    });
    await catalog.call("createNamespace", { id: ["__system"] });
    const id = ["__system", "geneva_errors"];
    expect((await catalog.call("createTable", { id }, { body: tableToIPC(records, "stream") })).status).toBe(200);
    expect(await errorsOf(first)).toEqual([
      {
        type: "ValueError",
        message: "x".repeat(300),
        trace: `${"\n".repeat(1_190)}ValueError`,
        column: "twice",
        fragment_id: "3",
        timestamp: "1970-01-01T00:00:01",
      },
    ]);
    expect(await errorsOf(second)).toEqual([]);
  });

  test("lists jobs of a namespace, a table, a status and a principal, and no audit records", async () => {
    const [a, b] = [await createComputed("twice"), await createComputed("twice")];
    const first = (await backfill(a, "twice")).body.job_id;
    const second = (await backfill(b, "twice")).body.job_id;
    await alter(first, setStatus("Failed"));
    const list = async (request: Readonly<Record<string, unknown>>) =>
      (await catalog.call("listJobs", request)).body.jobs.map(({ job_id }) => job_id);
    expect(await list({ id: a.slice(0, -1) })).toEqual([first]);
    expect(await list({ table: b.join("$") })).toEqual([second]);
    const failed = await list({ status: "failed" });
    expect(failed).toContain(first);
    expect(failed).not.toContain(second);
    expect(await list({ id: a.slice(0, -1), principal: "stranger" })).toEqual([]);
  });

  test("cancels an open job, idempotently, and refuses ended ones", async () => {
    const id = await createComputed("twice");
    const job = (await backfill(id, "twice")).body.job_id.split("$");
    for (let time = 0; time < 2; time++)
      expect((await catalog.call("cancelJob", { id: job })).body.job).toMatchObject({
        status: "Canceled",
        reason: "canceled by bootstrap",
      });
    const done = (await backfill(id, "twice")).body.job_id;
    await alter(done, setStatus("Running"), setStatus("Succeeded"));
    expect((await catalog.call("cancelJob", { id: done.split("$") })).error.status).toBe(409);
  });

  test("retries a failed job with its parameters, and refuses open ones", async () => {
    const id = await createComputed("twice");
    const job = (await backfill(id, "twice", { concurrency: 2 })).body.job_id;
    expect((await catalog.call("retryJob", { id: job.split("$") })).error.status).toBe(409);
    await claimAttempt(catalog, job);
    await alter(job, set("reason", "it fell over"), setStatus("Failed"));
    const again = await catalog.call("retryJob", { id: job.split("$") });
    expect(again.status).toBe(201);
    expect(again.body.job_id).not.toBe(job);
    expect((await catalog.call("describeJob", { id: again.body.job_id.split("$") })).body.job).toMatchObject({
      status: "Queued",
      attempt: 0,
      parameters: { column: "twice", concurrency: 2 },
    });
  });

  test("retries the failed rows of an ended job, which may have succeeded, in the latest version", async () => {
    const id = await createVirtual("v");
    const job = (await backfill(id, "v", { error_policy: "skip", read_version: 1 })).body.job_id;
    const request = { id: job.split("$"), failed_rows: true };
    expect((await catalog.call("retryJob", request)).error.status).toBe(409);
    await alter(job, setStatus("Running"), setStatus("Succeeded"));
    expect((await catalog.call("retryJob", { id: request.id })).error.status).toBe(409);
    const { job_id } = (await catalog.call("retryJob", request)).body;
    const { parameters } = (await catalog.call("describeJob", { id: job_id.split("$") })).body.job;
    expect(parameters).toEqual({ column: "v", error_policy: "skip", failed_rows_of: job });
    // The same request while that job is open returns that job.
    expect((await catalog.call("retryJob", request)).body.job_id).toBe(job_id);
  });

  test("refuses to retry the failed rows of a job that records none", async () => {
    const { id } = await declareTable(catalog);
    const job = (await catalog.call("compactTable", { id })).body.job_id;
    await alter(job, setStatus("Failed"));
    const { error } = await catalog.call("retryJob", { id: job.split("$"), failed_rows: true });
    expect([error.status, error.detail]).toEqual([400, expect.stringContaining("failed_rows: only a backfill")]);
  });

  test("refuses to retry a job that its client executes, which no runner would claim", async () => {
    const { id } = await declareTable(catalog);
    const job = (await catalog.call("openJob", { id, column: "c" })).body.job_id;
    await alter(job, setStatus("Failed"));
    expect((await catalog.call("retryJob", { id: job.split("$") })).error).toMatchObject({
      status: 400,
      detail: "the client that opened the job executes it: start it there again",
    });
  });

  test("opens the caller's own jobs on any table, and is 404 for an unknown job, 409 for a record", async () => {
    const { id } = await declareTable(catalog);
    const { job_id } = (await catalog.call("openJob", { id, column: "c" })).body;
    expect((await catalog.call("describeJob", { id: job_id.split("$") })).body.job).toMatchObject({
      operation: "OpenJob",
      parameters: { column: "c" },
    });
    const [record] = (await catalog.call("listTransactions", { table: id.join("$") })).body.transactions.slice(-1);
    for (const name of [
      "describeJob",
      "describeJobLog",
      "listJobAttempts",
      "listJobErrors",
      "cancelJob",
      "retryJob",
    ] as const) {
      expect((await catalog.call(name, { id: ["nothing"] })).error.status).toBe(404);
      expect((await catalog.call(name, { id: record?.transaction_id.split("$") ?? [] })).error.status).toBe(409);
    }
  });
});
