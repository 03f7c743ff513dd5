import { describe, expect, test } from "vitest";
import { beginAttempt, claimAttempt, finishAttempt, heartbeat, startAttempt } from "../support/attempts.ts";
import { declareTable, startTestCatalog, useCatalog } from "../support/catalog.ts";
import { createTestDatabase, executeSql } from "../support/database.ts";
import { createEarlierSchema } from "../support/earlier-schema.ts";

const catalog = useCatalog();

async function openJob(): Promise<string> {
  const { id } = await declareTable(catalog);
  return (await catalog.call("openJob", { id, column: "c" })).body.job_id;
}

const describeJob = async (job: string) => (await catalog.call("describeJob", { id: job.split("$") })).body.job;
const attemptsOf = async (job: string) => (await catalog.call("listJobAttempts", { id: job.split("$") })).body.attempts;

describe("an attempt", () => {
  test("is claimed by one of several runners", async () => {
    const job = await openJob();
    const claim = () =>
      catalog.call("claimJobAttempt", { id: job.split("$"), after: 0, platform: { ray_job: "ns/a" } });
    const statuses = (await Promise.all([claim(), claim(), claim()])).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 409, 409]);
    expect(await describeJob(job)).toMatchObject({ status: "Queued", attempt: 1, platform: { ray_job: "ns/a" } });
  });

  test("is started by one process, which may repeat the request", async () => {
    const job = await openJob();
    await claimAttempt(catalog, job);
    const start = (claim: string) => catalog.call("startJobAttempt", { id: job.split("$"), attempt: 1, claim });
    const first = (await start("a")).body.job;
    expect(first.status).toBe("Running");
    expect((await start("a")).body.job.started_at_millis).toBe(first.started_at_millis);
    expect((await start("b")).error).toMatchObject({ status: 409, detail: "another process runs attempt 1" });
  });

  test.each([
    ["startJobAttempt", {}],
    ["heartbeatJobAttempt", { progress: { rows_committed: 9 }, log_tail: "late", reason: "late" }],
    ["finishJobAttempt", { status: "Succeeded", result: { rows_assigned: 9 } }],
    ["releaseJobAttempt", {}],
  ] as const)("that was superseded changes nothing by %s", async (name, fields) => {
    const job = await openJob();
    await beginAttempt(catalog, job);
    await claimAttempt(catalog, job);
    const before = await describeJob(job);
    const late = await catalog.call(name, { id: job.split("$"), attempt: 1, claim: "process", ...fields });
    expect(late.error).toMatchObject({ status: 409, detail: "attempt 1 is not the latest one, which is 2" });
    expect(await describeJob(job)).toEqual(before);
  });

  test("has a progress over time, whose older part becomes coarser at 120 samples", async () => {
    const job = await openJob();
    await beginAttempt(catalog, job);
    await heartbeat(catalog, job, { log_tail: "no progress yet" });
    for (let rows = 1; rows <= 130; rows++) await heartbeat(catalog, job, { progress: { rows_committed: rows } });
    await finishAttempt(catalog, job, { status: "Succeeded", progress: { rows_committed: 131 } });
    const samples = (await attemptsOf(job))[0]?.samples ?? [];
    const rows = samples.map(({ rows_committed }) => rows_committed);
    expect(rows.slice(0, 3)).toEqual([1, 3, 5]);
    expect(rows.slice(-3)).toEqual([129, 130, 131]);
    expect(rows).toHaveLength(60 + 11);
    const times = samples.map(({ at_millis }) => at_millis);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  test("learns that its job was canceled, and changes nothing then", async () => {
    const job = await openJob();
    await beginAttempt(catalog, job);
    await catalog.call("cancelJob", { id: job.split("$") });
    const before = await describeJob(job);
    for (const name of ["startJobAttempt", "heartbeatJobAttempt", "finishJobAttempt"] as const) {
      const request = { id: job.split("$"), attempt: 1, claim: "process", status: "Succeeded" };
      expect((await catalog.call(name, request)).body.job).toEqual(before);
    }
    expect((await catalog.call("claimJobAttempt", { id: job.split("$"), after: 1, platform: {} })).status).toBe(409);
  });

  test("is alive only by the heartbeats of its process after its start, whatever the runner reports", async () => {
    const job = await openJob();
    await claimAttempt(catalog, job);
    const ofRunner = { id: job.split("$"), attempt: 1, reason: "Waiting: no GPU" };
    const claimed = await describeJob(job);
    await expect
      .poll(async () => (await catalog.call("heartbeatJobAttempt", ofRunner)).body.job.heartbeat)
      .not.toBe(claimed.heartbeat);
    await startAttempt(catalog, job);
    const { heartbeat: begun } = await describeJob(job);
    const told = (await catalog.call("heartbeatJobAttempt", { ...ofRunner, reason: "" })).body.job;
    expect([told.heartbeat, told.reason]).toEqual([begun, undefined]);
  });

  test("that did not start is released and does not count", async () => {
    const job = await openJob();
    await claimAttempt(catalog, job);
    const release = (attempt: number) => catalog.call("releaseJobAttempt", { id: job.split("$"), attempt });
    expect((await release(1)).body.job).toMatchObject({ attempt: 0, platform: {} });
    expect(await attemptsOf(job)).toEqual([]);
    await beginAttempt(catalog, job);
    expect((await release(1)).error).toMatchObject({ status: 409, detail: "attempt 1 has started already" });
  });

  test("keeps its output, its reason and its place when another one follows", async () => {
    const job = await openJob();
    await beginAttempt(catalog, job, 1, { ray_job: "ns/first" });
    await heartbeat(catalog, job, { log_tail: "one\ntwo", progress: { rows_total: 10, rows_committed: 4 } });
    await finishAttempt(catalog, job, { reason: "ray died" });
    expect(await describeJob(job)).toMatchObject({ status: "Running", reason: "ray died" });
    await beginAttempt(catalog, job, 1, { ray_job: "ns/second" });
    expect(await describeJob(job)).not.toHaveProperty("reason");
    await finishAttempt(catalog, job, { status: "Failed", reason: "ValueError: no such film", log_tail: "three" });
    const times = { started_at_millis: expect.any(Number), ended_at_millis: expect.any(Number) };
    expect(await attemptsOf(job)).toMatchObject([
      { ...times, number: 1, reason: "ray died", lines: ["one", "two"], platform: { ray_job: "ns/first" } },
      { ...times, number: 2, reason: "ValueError: no such film", lines: ["three"], platform: { ray_job: "ns/second" } },
    ]);
    expect(await describeJob(job)).toMatchObject({ status: "Failed", attempt: 2, progress: { rows_committed: 4 } });
  });

  test("may report any text that a program prints", async () => {
    const job = await openJob();
    await beginAttempt(catalog, job);
    await heartbeat(catalog, job, { log_tail: "caf\u00e9 \0 \u{1f600}" });
    await finishAttempt(catalog, job, { status: "Failed", reason: "bytes \0" });
    expect(await attemptsOf(job)).toMatchObject([{ lines: ["caf\u00e9 \ufffd \u{1f600}"], reason: "bytes \ufffd" }]);
    expect((await describeJob(job)).reason).toBe("bytes \ufffd");
  });

  test("leaves the properties of clients alone, which present parameters and the reason", async () => {
    const job = await openJob();
    const id = job.split("$");
    await beginAttempt(catalog, job);
    const actions = [{ setPropertyAction: { key: "attempt.7", value: "mine" } }];
    await catalog.call("alterTransaction", { id, actions });
    await finishAttempt(catalog, job, { status: "Failed", reason: "no such film" });
    expect((await describeJob(job)).attempt).toBe(1);
    const { properties } = (await catalog.call("describeTransaction", { id })).body;
    expect(properties).toEqual({ "attempt.7": "mine", column: "c", reason: "no such film" });
  });
});

test("converts jobs whose state was in properties, with their latest attempt", async () => {
  const { database, url } = await createTestDatabase();
  await createEarlierSchema(database, "0011-clock");
  const row = (id: string, operation: string, status: string, properties: object) =>
    `('0190-${id}', 'ns', '${operation}', '[["ns","t"]]', 'ada', 'request', '${status}', '${JSON.stringify(properties)}', 1000, 2000)`;
  const begun = "2026-01-01T00:00:00.000Z";
  const running = { "attempt.1": "x", "attempt.2": begun, started_at: begun, ray_job: "ns/j", log_tail: "one\ntwo" };
  const progress = { "progress.rows_total": "10", "progress.rows_committed": "many", "result.version": "3" };
  await executeSql(
    database,
    `insert into jobs (id, namespace, operation, objects, principal, request_id, status, properties, created_at, updated_at)
     values ${row("1", "AlterTableBackfillColumns", "Running", { column: "c", where: "id > 1", ...running, ...progress })},
     ${row("2", "CompactTable", "Queued", { target_rows_per_fragment: "7" })},
     ${row("3", "OpenJob", "Failed", { column: "c", reason: "no film", ray_job_id: "raysubmit_1" })}`,
  );
  const own = await startTestCatalog({ TILTYARD_DATABASE_URL: url, TILTYARD_AUDIT_RETENTION: "40000d" });
  const { jobs } = (await own.call("listJobs", { ascending: true })).body;
  expect(jobs).toMatchObject([
    {
      ...{ status: "Running", attempt: 2, parameters: { column: "c", where: "id > 1" }, heartbeat: begun },
      ...{ progress: { rows_total: 10 }, result: { version: 3 }, platform: { ray_job: "ns/j" }, principal: "ada" },
    },
    { status: "Queued", attempt: 0, parameters: { target_rows_per_fragment: "7" }, progress: {}, platform: {} },
    { status: "Failed", attempt: 0, parameters: { column: "c" }, reason: "no film", ended_at_millis: 2000 },
  ]);
  const attempts = (await own.call("listJobAttempts", { id: ["ns", "0190-1"] })).body.attempts;
  expect(attempts).toMatchObject([{ number: 2, lines: ["one", "two"], platform: { ray_job: "ns/j" } }]);
  const { properties } = (await own.call("describeTransaction", { id: ["ns", "0190-3"] })).body;
  expect(properties).toEqual({ column: "c", reason: "no film", ray_job_id: "raysubmit_1" });
  await own.stop();
});
