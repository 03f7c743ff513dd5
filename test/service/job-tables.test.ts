import { describe, expect, test } from "vitest";
import { beginAttempt, claimAttempt } from "../support/attempts.ts";
import { declareTable, useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms, films } from "../support/rows.ts";

const catalog = useCatalog({ TILTYARD_DROP_RETENTION: "1h" });

async function openJob(id: readonly string[]): Promise<string[]> {
  return (await catalog.call("openJob", { id, column: "c" })).body.job_id.split("$");
}

const describeJob = async (id: readonly string[]) => (await catalog.call("describeJob", { id })).body.job;

describe("the table of an open job", () => {
  test.each([
    ["waits", async () => {}],
    ["runs", (job: string) => beginAttempt(catalog, job)],
  ])("is not renamed while it %s", async (_, begin) => {
    const { id } = await declareTable(catalog);
    const job = await openJob(id);
    await begin(job.join("$"));
    const rename = () => catalog.call("renameTable", { id, new_table_name: "renamed" });
    expect((await rename()).error).toMatchObject({
      status: 409,
      detail: `table ${id.join("$")} has the open job ${job.join("$")}, which opens it by its name: wait for its end, or cancel it`,
    });
    await catalog.call("cancelJob", { id: job });
    expect((await rename()).status).toBe(200);
  });

  test("is undropped under its own name only, because a job in another namespace would lock its columns", async () => {
    const id = await createFilms(catalog);
    const job = await openJob(id);
    await catalog.call("dropTable", { id });
    const { dropped_tables } = (await catalog.call("listDroppedTables", { id: id.slice(0, -1) })).body;
    await catalog.call("createNamespace", { id: ["undropped"] });
    const undrop = (new_id: readonly string[]) =>
      catalog.call("undropTable", { id, dropped_id: dropped_tables[0]?.dropped_id, new_id });
    expect((await undrop(["undropped", "films"])).error).toMatchObject({
      status: 409,
      detail: `table ${id.join("$")} has the open job ${job.join("$")}, which opens it by its name: wait for its end, or cancel it`,
    });
    expect((await undrop(id)).status).toBe(200);
  });

  test.each([
    ["dropTable", "claimed", false, /^the table .* was dropped$/],
    ["dropTable", "claimed", true, /^the table .* was dropped, and another table has its name now: open a new job/],
    ["dropTable", "running", true, /^the table .* was dropped, and another table has its name now: open a new job/],
    ["deregisterTable", "running", false, /^the table .* was dropped$/],
  ] as const)(
    "fails its job after %s, as its next attempt is claimed or sends a heartbeat (%s, another table: %s)",
    async (remove, state, isRecreated, reason) => {
      const { id } = await declareTable(catalog);
      const job = await openJob(id);
      if (state === "running") await beginAttempt(catalog, job.join("$"));
      expect((await catalog.call(remove, { id })).status).toBe(200);
      if (isRecreated) expect((await catalog.call("declareTable", { id })).status).toBe(200);
      const answer =
        state === "running"
          ? await catalog.call("heartbeatJobAttempt", { id: job, attempt: 1, claim: "process" })
          : await catalog.call("claimJobAttempt", { id: job, after: 0, platform: {} });
      const failed = { status: "Failed", reason: expect.stringMatching(reason), attempt: state === "running" ? 1 : 0 };
      expect(answer.body.job).toMatchObject(failed);
      expect(await describeJob(job)).toMatchObject(failed);
    },
  );

  test("is written by the key of its job, and another table of its name is not", async () => {
    const id = await createFilms(catalog);
    const job = await openJob(id);
    await claimAttempt(catalog, job.join("$"));
    const { key } = (await catalog.call("createJobKey", { id: job, attempt: 1 })).body;
    const tag = async () =>
      (await catalog.call("createTableTag", { id, tag: crypto.randomUUID(), version: 1 }, { key })).status;
    expect(await tag()).toBe(200);
    await catalog.call("dropTable", { id });
    await catalog.call("createTable", { id }, { body: arrowStream(films) });
    expect(await tag()).toBe(403);
  });
});

test("a retry of a job follows its table to its new name", async () => {
  const id = await createFilms(catalog);
  const job = (await catalog.call("compactTable", { id })).body.job_id.split("$");
  await catalog.call("cancelJob", { id: job });
  await catalog.call("renameTable", { id, new_table_name: "renamed" });
  const retried = (await catalog.call("retryJob", { id: job })).body.job_id.split("$");
  const renamed = [...id.slice(0, -1), "renamed"];
  expect(await describeJob(retried)).toMatchObject({ status: "Queued", objects: [renamed] });
  await catalog.call("cancelJob", { id: retried });
  await catalog.call("dropTable", { id: renamed });
  await catalog.call("createTable", { id: renamed }, { body: arrowStream(films) });
  expect((await catalog.call("retryJob", { id: retried })).error).toMatchObject({ status: 404 });
});

test("a retry of a job reads the latest version, in which finished rows have values", async () => {
  const id = await createFilms(catalog);
  await catalog.call("alterTableAddColumns", { id, new_columns: [{ name: "twice", computed: "id * 2" }] });
  const request = { id, column: "twice", read_version: 2, concurrency: 1 };
  const job = (await catalog.call("alterTableBackfillColumns", request)).body.job_id.split("$");
  await catalog.call("cancelJob", { id: job });
  const retried = (await catalog.call("retryJob", { id: job })).body.job_id.split("$");
  expect((await describeJob(retried)).parameters).toEqual({ column: "twice", concurrency: 1 });
});

test("a retry of a job whose table was renamed needs the role writer on its new name", async () => {
  const id = await createFilms(catalog);
  const [namespace = ""] = id;
  const key = await catalog.keyFor("former-writer", { [namespace]: "writer" });
  const job = (await catalog.call("compactTable", { id }, { key })).body.job_id.split("$");
  await catalog.call("cancelJob", { id: job });
  await catalog.call("createNamespace", { id: ["others"] });
  await catalog.call("renameTable", { id, new_namespace_id: ["others"], new_table_name: "secret" });
  const { error } = await catalog.call("retryJob", { id: job }, { key });
  expect(error).toMatchObject({ status: 404, code: 4, detail: `table ${id.join("$")} does not exist` });
  expect((await catalog.call("listJobs", { table: "others$secret" })).body.jobs).toEqual([]);
  expect((await catalog.call("retryJob", { id: job })).status).toBe(201);
});
