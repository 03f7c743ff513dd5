import { afterEach, describe, expect, test, vi } from "vitest";
import { beginAttempt, claimAttempt, finishAttempt, heartbeat, startAttempt } from "../support/attempts.ts";
import { declareTable, useCatalog } from "../support/catalog.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog();
afterEach(() => void vi.useRealTimers());

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
  ] as const)("changes nothing by %s after it was superseded", async (name, fields) => {
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
    // Only a started attempt needs the parameters of its job.
    const { parameters, ...before } = await describeJob(job);
    for (const name of ["startJobAttempt", "heartbeatJobAttempt", "finishJobAttempt"] as const) {
      const request = { id: job.split("$"), attempt: 1, claim: "process", status: "Succeeded" };
      const { job: told } = (await catalog.call(name, request)).body;
      expect(told).toEqual(name === "startJobAttempt" ? { ...before, parameters } : before);
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

  test("remains as a started one when the next one is released", async () => {
    const job = await openJob();
    await beginAttempt(catalog, job);
    await finishAttempt(catalog, job, { reason: "the machine died" });
    await claimAttempt(catalog, job);
    const id = job.split("$");
    const released = (await catalog.call("releaseJobAttempt", { id, attempt: 2 })).body.job;
    expect(released).toMatchObject({ status: "Running", attempt: 1, started_at_millis: expect.any(Number) });
    // Without a heartbeat, a runner need not wait before the next attempt.
    expect(released).not.toHaveProperty("heartbeat");
    const { error } = await catalog.call("releaseJobAttempt", { id, attempt: 1 });
    expect(error).toMatchObject({ status: 409, detail: "attempt 1 has started already" });
    await claimAttempt(catalog, job);
    expect((await catalog.call("describeJob", { id })).body.job.attempt).toBe(2);
  });

  test("is released and does not count when it did not start", async () => {
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

  test("counts as interrupted once, however often its runner reports that, and has no heartbeat then", async () => {
    const job = await openJob();
    await beginAttempt(catalog, job);
    for (let time = 0; time < 2; time += 1)
      await finishAttempt(catalog, job, { interrupted: true, reason: "the runner stopped" });
    const described = await describeJob(job);
    expect(described).toMatchObject({ status: "Running", attempt: 1, interruptions: 1, reason: "the runner stopped" });
    expect(described).not.toHaveProperty("heartbeat");
    expect((await attemptsOf(job))[0]).toMatchObject({
      reason: "the runner stopped",
      ended_at_millis: expect.any(Number),
    });
    await beginAttempt(catalog, job);
    expect(await describeJob(job)).toMatchObject({ attempt: 2, interruptions: 1, heartbeat: expect.any(String) });
  });

  test("ends by a pause without counting, learns of it, and another one follows only after the job is resumed", async () => {
    const job = await openJob();
    const id = job.split("$");
    await beginAttempt(catalog, job);
    await heartbeat(catalog, job, { progress: { rows_total: 10, rows_committed: 4 } });
    expect((await catalog.call("pauseJob", { id })).body.job).toMatchObject({ interruptions: 1 });
    await heartbeat(catalog, job, { progress: { rows_total: 10, rows_committed: 5 } });
    const told = await describeJob(job);
    expect(told).toMatchObject({
      status: "Running",
      paused_at_millis: expect.any(Number),
      interruptions: 1,
      progress: { rows_committed: 4 },
    });
    expect(told).not.toHaveProperty("heartbeat");
    expect((await attemptsOf(job))[0]).toMatchObject({
      reason: "the job was paused",
      ended_at_millis: expect.any(Number),
    });
    const claim = () => catalog.call("claimJobAttempt", { id, after: 1, platform: {} });
    expect((await claim()).error).toMatchObject({ status: 409, detail: expect.stringContaining("is paused") });
    expect((await catalog.call("resumeJob", { id })).body.job).not.toHaveProperty("paused_at_millis");
    expect((await claim()).body.job).toMatchObject({ attempt: 2, interruptions: 1 });
  });

  test("ends for good by a pause, also before its start and when the job is resumed at once", async () => {
    const job = await openJob();
    const id = job.split("$");
    await claimAttempt(catalog, job);
    await catalog.call("pauseJob", { id });
    const released = await catalog.call("releaseJobAttempt", { id, attempt: 1 });
    expect(released.error).toMatchObject({ status: 409, detail: expect.stringContaining("attempt 1 has ended") });
    await catalog.call("resumeJob", { id });
    for (const name of ["createJobKey", "startJobAttempt", "heartbeatJobAttempt", "releaseJobAttempt"] as const) {
      const { error } = await catalog.call(name, { id, attempt: 1, claim: "process" });
      expect(error).toMatchObject({ status: 409, detail: expect.stringContaining("attempt 1 has ended") });
    }
    const described = await describeJob(job);
    expect(described).toMatchObject({ status: "Queued", attempt: 1, interruptions: 1 });
    expect(described).not.toHaveProperty("heartbeat");
    await beginAttempt(catalog, job);
    expect(await describeJob(job)).toMatchObject({ status: "Running", attempt: 2, interruptions: 1 });
  });

  test("succeeds although its job is paused, when its last commit was already done", async () => {
    const job = await openJob();
    await beginAttempt(catalog, job);
    await catalog.call("pauseJob", { id: job.split("$") });
    await finishAttempt(catalog, job, { status: "Succeeded" });
    expect(await describeJob(job)).toMatchObject({ status: "Succeeded" });
    expect(await describeJob(job)).not.toHaveProperty("paused_at_millis");
    expect((await catalog.call("pauseJob", { id: job.split("$") })).error.status).toBe(409);
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

describe("a job with timeout_seconds", () => {
  const openTimed = async () => {
    const id = await createFilms(catalog);
    return (await catalog.call("compactTable", { id, timeout_seconds: 3600 })).body.job_id;
  };
  const passSeconds = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);

  test("fails with that reason at the first heartbeat after all its attempts together ran for so long", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const job = await openTimed();
    passSeconds(4000);
    await beginAttempt(catalog, job);
    passSeconds(3000);
    await finishAttempt(catalog, job, { reason: "Ray died" });
    passSeconds(4000);
    await beginAttempt(catalog, job);
    passSeconds(599);
    await heartbeat(catalog, job);
    expect(await describeJob(job)).toMatchObject({ status: "Running", parameters: { timeout_seconds: 3600 } });
    passSeconds(1);
    const { body } = await catalog.call("heartbeatJobAttempt", {
      ...{ id: job.split("$"), attempt: 2, claim: "process" },
      ...{ progress: { rows_total: 10, rows_committed: 4 }, log_tail: "the last line" },
    });
    const reason = "stopped after running for 60 min, its timeout_seconds";
    expect(body.job).toMatchObject({ status: "Failed", reason, progress: { rows_committed: 4 } });
    expect((await attemptsOf(job))[1]).toMatchObject({ reason, lines: ["the last line"] });
  });

  test("fails instead of another attempt when its process was killed after that time", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const job = await openTimed();
    await beginAttempt(catalog, job);
    passSeconds(3600);
    await claimAttempt(catalog, job);
    expect(await describeJob(job)).toMatchObject({ status: "Failed", attempt: 1 });
  });

  test("succeeds when its attempt reports the success after that time", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const job = await openTimed();
    await beginAttempt(catalog, job);
    passSeconds(3601);
    await finishAttempt(catalog, job, { status: "Succeeded" });
    expect(await describeJob(job)).toMatchObject({ status: "Succeeded" });
  });

  test.each([0, 2_592_001, 1.5, "1h"])("is refused for %j seconds", async (timeout_seconds) => {
    const id = await createFilms(catalog);
    for (const [name, request] of openings)
      expect((await catalog.call(name, { id, ...request, timeout_seconds })).error.detail).toMatch(
        /^timeout_seconds: /,
      );
  });

  test("is opened by every request for a job of runners, also for a column of lancedb, and retried with it", async () => {
    const id = await createFilms(catalog);
    await catalog.call("alterTableAddColumns", { id, new_columns: [{ name: "twice", computed: "id * 2" }] });
    for (const [name, request] of openings) {
      const opened = await catalog.call(name, { id, ...request, timeout_seconds: 60 });
      expect([name, opened.status, opened.headers.get("x-ignored-fields")]).toEqual([name, 202, null]);
      const { job_id } = opened.body;
      await catalog.call("cancelJob", { id: job_id.split("$") });
      const again = (await catalog.call("retryJob", { id: job_id.split("$") })).body.job_id;
      for (const job of [job_id, again]) expect((await describeJob(job)).parameters.timeout_seconds).toBe(60);
    }
  });
});

describe("a job without progress", () => {
  const passMinutes = (minutes: number) => vi.setSystemTime(Date.now() + minutes * 60_000);
  const stalledIn = async (job: string) => {
    const id = job.split("$");
    const { jobs } = (await catalog.call("listJobs", { id: id.slice(0, -1) })).body;
    const listed = jobs.find(({ job_id }) => job_id === job)?.stalled_since_millis;
    expect((await describeJob(job)).stalled_since_millis).toBe(listed);
    return listed;
  };
  const stalledInAll = async () =>
    Number(/^tiltyard_jobs_stalled (\d+)$/m.exec(await (await catalog.fetch("/metrics")).text())?.[1]);

  test("has stalled since its start after 30 minutes, in its description, in lists and in the metrics", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const job = await openJob();
    passMinutes(60);
    await beginAttempt(catalog, job);
    const started = Date.now();
    const before = await stalledInAll();
    passMinutes(29);
    await heartbeat(catalog, job, { log_tail: "still here" });
    expect([await stalledIn(job), await stalledInAll()]).toEqual([undefined, before]);
    passMinutes(1);
    expect([await stalledIn(job), await stalledInAll()]).toEqual([started, before + 1]);
    await finishAttempt(catalog, job, { status: "Failed" });
    expect([await stalledIn(job), await stalledInAll()]).toEqual([undefined, before]);
  });

  test.each([
    ["has not stalled after it committed rows", { rows_committed: 1 }, false],
    ["has not stalled after it computed rows", { rows_checkpointed: 1 }, false],
    ["has not stalled after it ended tasks", { tasks_completed: 1 }, false],
    ["has stalled although its rate changes", { rows_per_second: 1 }, true],
    ["has stalled although it has more workers", { workers_active: 1 }, true],
  ])("%s", async (_, counts, hasStalled) => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const job = await openJob();
    await beginAttempt(catalog, job);
    const progress = { rows_total: 10, rows_committed: 0 };
    await heartbeat(catalog, job, { progress });
    passMinutes(20);
    await heartbeat(catalog, job, { progress: { ...progress, ...counts } });
    passMinutes(20);
    await heartbeat(catalog, job, { progress: { ...progress, ...counts } });
    expect((await stalledIn(job)) !== undefined).toBe(hasStalled);
  });

  test("has not stalled when another attempt has begun", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const job = await openJob();
    await beginAttempt(catalog, job);
    passMinutes(60);
    await claimAttempt(catalog, job);
    expect(await stalledIn(job)).toBeUndefined();
  });
});

const openings = [
  ["compactTable", {}],
  ["cleanUpTable", {}],
  ["buildTableIndex", { column: "id", index_type: "BTREE" }],
  ["alterTableBackfillColumns", { column: "twice" }],
  ["refreshMaterializedView", {}],
] as const;
