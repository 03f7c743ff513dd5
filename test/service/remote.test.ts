import { describe, expect, test } from "vitest";
import { beginAttempt, claimAttempt, finishAttempt, heartbeat } from "../support/attempts.ts";
import { useCatalog } from "../support/catalog.ts";
import { createFilms, readRows } from "../support/rows.ts";

const catalog = useCatalog();

/** Opens a job for a column of a new table. */
async function openJob(): Promise<{ readonly table: string[]; readonly job_id: string }> {
  const table = await createFilms(catalog);
  await catalog.call("alterTableAddColumns", { id: table, new_columns: [{ name: "twice", computed: "id * 2" }] });
  const { body } = await catalog.call("alterTableBackfillColumns", { id: table, column: "twice" });
  return { table, job_id: body.job_id };
}

const set = (key: string, value: string) => ({ setPropertyAction: { key, value } });
const setStatus = (status: string) => ({ setStatusAction: { status } });

async function alter(job: string, ...actions: readonly object[]) {
  expect((await catalog.call("alterTransaction", { id: job.split("$"), actions })).status).toBe(200);
}

async function events(request: object) {
  return readRows((await catalog.call("queryRemoteJobEvents", { ...request })).body);
}

describe("LanceDB's remote client", () => {
  test("finds a table with its version, also an earlier one", async () => {
    const { table } = await openJob();
    const { body } = await catalog.call("remoteDescribeTable", { id: table, version: null });
    expect(body).toMatchObject({ table: table.join("$"), version: 2 });
    expect((await catalog.call("remoteDescribeTable", { id: table, version: 1 })).body.version).toBe(1);
    expect((await catalog.call("remoteDescribeTable", { id: table, version: 9 })).error.status).toBe(404);
  });

  test("polls a job in its own words until the job has a result", async () => {
    const { job_id } = await openJob();
    const describeJob = async () => (await catalog.call("describeRemoteJob", { job_id })).body;
    const shared = { job_id, job_type: "AlterTableBackfillColumns", spec: { column: "twice" } };
    expect(await describeJob()).toEqual({ ...shared, job_state: "IN_PROGRESS", creation_ms: expect.any(Number) });
    await beginAttempt(catalog, job_id);
    await heartbeat(catalog, job_id, { progress: { rows_total: 5 } });
    expect((await describeJob()).job_state).toBe("IN_PROGRESS");
    await finishAttempt(catalog, job_id, {
      status: "Succeeded",
      progress: { rows_total: 5, rows_committed: 5 },
      result: { rows_assigned: 3, source_version: 2, published_version: 4 },
    });
    const result = { rows_assigned: 3, rows_failed: 0, rows_remaining: 0, source_version: 2, published_version: 4 };
    expect(await describeJob()).toMatchObject({ ...shared, job_state: "DONE", result });
  });

  test("counts no skipped rows of a function of Geneva among the assigned rows", async () => {
    const { job_id } = await openJob();
    await beginAttempt(catalog, job_id);
    const progress = { rows_total: 5, rows_committed: 5, rows_skipped_on_error: 2 };
    await finishAttempt(catalog, job_id, { status: "Succeeded", progress });
    expect((await catalog.call("describeRemoteJob", { job_id })).body.result).toMatchObject({
      rows_assigned: 3,
      rows_failed: 2,
      rows_remaining: 0,
    });
  });

  test("receives the reason of a failed job", async () => {
    const { job_id } = await openJob();
    await alter(job_id, set("reason", "ValueError: no such film"), setStatus("Failed"));
    expect((await catalog.call("describeRemoteJob", { job_id })).body).toMatchObject({
      job_state: "FAILED",
      failure: { message: "ValueError: no such film", retryable: false },
    });
  });

  test("cancels a job, and changes nothing of one that has ended", async () => {
    const { job_id } = await openJob();
    for (let time = 0; time < 2; time++)
      expect((await catalog.call("cancelRemoteJob", { job_id })).body).toEqual({ job_id, job_state: "CANCELLED" });
    const done = await openJob();
    await alter(done.job_id, setStatus("Running"), setStatus("Succeeded"));
    const { body } = await catalog.call("cancelRemoteJob", { job_id: done.job_id });
    expect(body.job_state).toBe("DONE");
    expect((await catalog.call("cancelRemoteJob", { job_id: "missing" })).error.status).toBe(404);
  });

  test("pauses a job and resumes it, each of them once, and refuses to for one that has ended", async () => {
    const { job_id } = await openJob();
    const stateOf = async () => (await catalog.call("describeRemoteJob", { job_id })).body.job_state;
    expect((await catalog.call("resumeRemoteJob", { job_id })).body).toEqual({});
    expect((await catalog.call("pauseRemoteJob", { job_id })).body).toEqual({ paused: true });
    expect((await catalog.call("pauseRemoteJob", { job_id })).body).toEqual({});
    expect(await stateOf()).toBe("PAUSED");
    expect((await catalog.call("listRemoteJobs")).body.jobs[0]).toMatchObject({ job_id, state: "PAUSED" });
    expect((await catalog.call("resumeRemoteJob", { job_id })).body).toEqual({ resumed: true });
    expect(await stateOf()).toBe("IN_PROGRESS");
    await catalog.call("cancelRemoteJob", { job_id });
    for (const name of ["pauseRemoteJob", "resumeRemoteJob"] as const) {
      const { error } = await catalog.call(name, { job_id });
      expect(error).toMatchObject({ status: 409, detail: "the job has ended: it is Canceled" });
      expect((await catalog.call(name, { job_id: "missing" })).error.status).toBe(404);
    }
  });

  test("lists jobs a page at a time", async () => {
    const { table, job_id } = await openJob();
    const { jobs } = (await catalog.call("listRemoteJobs")).body;
    expect(jobs[0]).toEqual({
      job_id,
      table: table.join("$"),
      job_type: "AlterTableBackfillColumns",
      state: "IN_PROGRESS",
      created_at_millis: expect.any(Number),
    });
    await openJob();
    const page = (await catalog.call("listRemoteJobs", { limit: 1 })).body;
    expect(page.jobs).toHaveLength(1);
    const next = (await catalog.call("listRemoteJobs", { limit: 1, page_token: page.page_token })).body;
    expect(next.jobs.map((job) => job.job_id)).toEqual([job_id]);
    expect((await catalog.call("listRemoteJobs", { page_token: "none of its own" })).error.status).toBe(400);
  });

  test("reads what happened to a job as Arrow", async () => {
    const { job_id } = await openJob();
    await claimAttempt(catalog, job_id);
    await beginAttempt(catalog, job_id);
    await heartbeat(catalog, job_id, { progress: { rows_committed: 5 } });
    await alter(job_id, setStatus("Canceled"));
    expect((await events({ job_id })).map(({ state }) => state)).toEqual(["queued", "claim", "claim", "cancelled"]);
    expect(await events({ job_id, filter: "state = 'claim'" })).toMatchObject([
      { claim_entity: "attempt 1", rows_processed: 0n, updated_by: "runner" },
      { claim_entity: "attempt 2", rows_processed: 5n, updated_by: "runner" },
    ]);
    expect(await events({ job_id, limit: 1 })).toHaveLength(1);
    expect((await catalog.call("queryRemoteJobEvents", { job_id, filter: "state LIKE 'x'" })).error.detail).toContain(
      "state = 'claim'",
    );
  });

  test("sees no job of a namespace where it has no role", async () => {
    const { table, job_id } = await openJob();
    const key = await catalog.keyFor("elsewhere", { elsewhere: "admin" });
    const reader = await catalog.keyFor("reader of it", { [table[0] ?? ""]: "reader" });
    for (const name of ["describeRemoteJob", "cancelRemoteJob", "queryRemoteJobEvents", "listRemoteJobs"] as const)
      expect((await catalog.call(name, { job_id }, { key })).error.status).toBe(403);
    expect((await catalog.call("describeRemoteJob", { job_id }, { key: reader })).status).toBe(200);
    expect((await catalog.call("cancelRemoteJob", { job_id }, { key: reader })).error.status).toBe(403);
  });
});
