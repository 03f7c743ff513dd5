import { readdirSync, readFileSync, rmSync } from "node:fs";
import { connectNamespace, type Table } from "@lancedb/lancedb";
import { Table as ArrowTable, Field, List, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { beforeAll, describe, expect, test } from "vitest";
import { differingFragments } from "../../service/lance/manifest.ts";
import { findJobById, updateJob } from "../../service/store/jobs.ts";
import { openStore } from "../../service/store/open.ts";
import { claimAttempt } from "../support/attempts.ts";
import { type OperationName, pathOf, useCatalog } from "../support/catalog.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog({ TILTYARD_RUNNER_API_KEY: "key-of-the-runner-0123456789" });
const runner = { key: "key-of-the-runner-0123456789" };

let table: string[];
let job: string[];
beforeAll(async () => {
  table = await createFilms(catalog);
  await catalog.call("createNamespace", { id: ["others"] });
});

/** Opens a job of the principal ann, a writer of the table and a reader of the rest, with a first attempt. */
async function openJob(): Promise<void> {
  const ann = await catalog.keyFor("ann", { [table[0] ?? ""]: "writer", others: "admin" });
  const { body } = await catalog.call("openJob", { id: table, column: crypto.randomUUID() }, { key: ann });
  job = body.job_id.split("$");
  await claimAttempt(catalog, job.join("$"), {}, runner);
}

async function alter(action: object): Promise<void> {
  expect((await catalog.call("alterTransaction", { id: job, actions: [action] }, runner)).status).toBe(200);
}

async function keyOf(attempt: number): Promise<string> {
  const { status, body } = await catalog.call("createJobKey", { id: job, attempt }, runner);
  expect([status, body.principal]).toEqual([201, `job:${job.join("$")} for ann`]);
  return body.key;
}

const statusOf = async (key: string, name: OperationName, request: object) =>
  (await catalog.call(name, { ...request }, { key })).status;

describe("the key of a job", () => {
  test("writes what the job changes and Geneva's records, and reads no other table of its principal", async () => {
    await openJob();
    const key = await keyOf(1);
    expect(await statusOf(key, "describeTransaction", { id: job })).toBe(200);
    expect(await statusOf(key, "createTableTag", { id: table, name: "t", tag: "t", version: 1 })).toBe(200);
    expect(await statusOf(key, "createNamespace", { id: ["__system"], mode: "exist_ok" })).toBe(200);
    expect(await statusOf(key, "describeTable", { id: table })).toBe(200);
    expect(await statusOf(key, "describeNamespace", { id: ["others"] })).toBe(403);
    expect(await statusOf(key, "declareTable", { id: ["others", "t"] })).toBe(403);
    expect(await statusOf(key, "declareTable", { id: [table[0], "t"] })).toBe(403);
    expect(await statusOf(key, "describeNamespace", { id: [] })).toBe(403);
    expect(await statusOf(key, "createJobKey", { id: job, attempt: 1 })).toBe(403);
  });

  test("stays after the start of its attempt when a runner that was paused before its submission continues", async () => {
    await openJob();
    // The paused runner has claimed the attempt. Another one has released it and claimed it again.
    await catalog.call("releaseJobAttempt", { id: job, attempt: 1 }, runner);
    await claimAttempt(catalog, job.join("$"), {}, runner);
    const key = await keyOf(1);
    expect(await statusOf(key, "startJobAttempt", { id: job, attempt: 1, claim: "process" })).toBe(200);
    const { error } = await catalog.call("createJobKey", { id: job, attempt: 1 }, runner);
    expect(error).toMatchObject({ status: 409, detail: "attempt 1 has started and keeps its key" });
    expect(await statusOf(key, "heartbeatJobAttempt", { id: job, attempt: 1, claim: "process" })).toBe(200);
  });

  test("creates nothing under the names of its job and of its table", async () => {
    await openJob();
    const key = await keyOf(1);
    for (const id of [job, table]) {
      expect(await statusOf(key, "createNamespace", { id })).toBe(403);
      expect(await statusOf(key, "declareTable", { id: [...id, "t"] })).toBe(403);
      expect(await statusOf(key, "listTables", { id })).toBe(403);
    }
    expect(await statusOf(key, "declareTable", { id: job })).toBe(403);
    const declared = { operations: [{ declare_table: { id: job } }] };
    expect(await statusOf(key, "batchCommitTables", declared)).toBe(403);
    await alter({ setStatusAction: { status: "Canceled" } });
    expect(await statusOf(key, "renameTable", { id: table, new_table_name: job[1] })).toBe(403);
  });

  describe("over the records of Geneva, which jobs share,", () => {
    const id = ["__system", "geneva_jobs"];
    let records: Table;
    let [own, key] = ["", ""];
    beforeAll(async () => {
      await catalog.call("createNamespace", { id: ["__system"], mode: "ExistOk" });
      await openJob();
      own = job.join("$");
      const texts = (values: readonly string[]) => vectorFromArray(values, new Utf8());
      const rows = new ArrowTable({
        job_id: texts(["other$1", own, "other$2"]),
        status: texts(["RUNNING", "PENDING", "DONE"]),
        events: vectorFromArray([["a"], [], ["b"]], new List(new Field("item", new Utf8(), true))),
      });
      expect((await catalog.call("createTable", { id }, { body: tableToIPC(rows, "stream") })).status).toBe(200);
      key = await keyOf(1);
      const client = await connectNamespace("rest", { uri: catalog.url, headers: { "x-api-key": key } });
      records = await client.openTable("geneva_jobs", ["__system"]);
    });
    const row = (job_id: string) => ({ job_id, status: "DONE", events: ["c"] });
    const written = async () =>
      (await records.query().toArray()).map(({ job_id, status }) => `${job_id} ${status}`).toSorted();

    test.each<[string, () => Promise<unknown>]>([
      [
        "changes one of another job",
        () => records.update({ where: "job_id = 'other$1'", values: { status: "FAILED" } }),
      ],
      ["changes those of all jobs", () => records.update({ values: { status: "FAILED" } })],
      ["deletes one of another job", () => records.delete("job_id = 'other$2'")],
      ["deletes those of all jobs", () => records.delete("true")],
      ["adds one of another job", () => records.add([row("other$1")])],
      ["adds one of no job", () => records.add([{ ...row(""), job_id: null }])],
      ["claims one of another job", () => records.update({ where: "job_id = 'other$1'", values: { job_id: own } })],
      ["drops a column of all of them", () => records.dropColumns(["status"])],
      ["renames the column of jobs", () => records.alterColumns([{ path: "job_id", rename: "id" }])],
      ["changes the type of a column", () => records.alterColumns([{ path: "status", dataType: "large_string" }])],
      ["replaces all of them", () => records.add([row(own)], { mode: "overwrite" })],
    ])("is refused when it %s", async (_, change) => {
      const before = await written();
      // The library keeps the staged manifest of a commit whose rejection is no conflict.
      await expect(change()).rejects.toThrow(/Commit result for version \d+ is unknown/);
      const { location } = (await catalog.call("describeTable", { id })).body;
      const versions = `${pathOf({ id, location })}/_versions`;
      const [staged = ""] = readdirSync(`/${versions}`).filter((name) => name.includes(".manifest-"));
      const commit = { id, version: (await records.version()) + 1, manifest_path: `${versions}/${staged}` };
      expect((await catalog.call("createTableVersion", commit, { key })).error).toMatchObject({
        status: 403,
        detail: expect.stringContaining("with its own job_id"),
      });
      const entries = { entries: [commit] };
      expect((await catalog.call("batchCreateTableVersions", entries, { key })).status).toBe(403);
      const operations = [{ create_table_version: commit }];
      expect((await catalog.call("batchCommitTables", { operations }, { key })).status).toBe(403);
      rmSync(`/${versions}/${staged}`);
      await records.checkoutLatest();
      expect(await written()).toEqual(before);
    });

    test("is checked by the parts of the table that it changes", async () => {
      const manifestOf = async () => {
        const { version } = (await catalog.call("describeTable", { id })).body;
        const described = (await catalog.call("describeTableVersion", { id, version })).body;
        return readFileSync(`/${described.version.manifest_path}`);
      };
      // The first deletion sets a flag of the whole table.
      await records.delete(`job_id = '${own}'`);
      const before = await manifestOf();
      await records.add([row(own)]);
      const added = await manifestOf();
      expect(differingFragments(before, added)).toEqual([[], [1]]);
      await records.update({ where: `job_id = '${own}'`, values: { status: "RUNNING" } });
      expect(differingFragments(added, await manifestOf())).toEqual([[1], [2]]);
    });

    test("is refused changes of others also after the record of the latest version was deleted", async () => {
      await records.add([row(own)]);
      const ranges = [{ start_version: await records.version(), end_version: -1 }];
      expect((await catalog.call("batchDeleteTableVersions", { id, ranges })).body.deleted_count).toBe(1);
      await records.checkoutLatest();
      const before = await written();
      await expect(records.delete("job_id = 'other$2'")).rejects.toThrow();
      await records.checkoutLatest();
      expect(await written()).toEqual(before);
      await records.delete(`job_id = '${own}'`);
      expect(await written()).toEqual(["other$1 RUNNING", "other$2 DONE"]);
    });

    test("changes its own ones, and keeps what it compacts", async () => {
      await records.add([row(own)]);
      await records.update({ where: `job_id = '${own}'`, values: { status: "RUNNING" } });
      await records.add([row(own)]);
      await records.delete(`job_id = '${own}' and status = 'RUNNING'`);
      await records.optimize();
      expect(await written()).toEqual([`${own} DONE`, "other$1 RUNNING", "other$2 DONE"]);
      const { location } = (await catalog.call("describeTable", { id })).body;
      expect(readdirSync(`/${pathOf({ id, location })}/_checks`)).toEqual([]);
    });
  });

  test("is in the audit, with the principal that created it", async () => {
    await openJob();
    await statusOf(await keyOf(1), "createTableTag", { id: table, tag: crypto.randomUUID(), version: 1 });
    const { transactions } = (await catalog.call("listTransactions", { id: [] })).body;
    const principal = `job:${job.join("$")} for ann`;
    expect(transactions).toContainEqual(expect.objectContaining({ operation: "CreateTableTag", principal }));
    const made = transactions.find(({ operation }) => operation === "CreateJobKey");
    expect(made).toMatchObject({ principal: "runner", properties: { principal, attempt: "1" } });
  });

  test("is invalid after the next attempt or the next key", async () => {
    await openJob();
    const [first, second] = [await keyOf(1), await keyOf(1)];
    expect(await statusOf(first, "describeTransaction", { id: job })).toBe(401);
    expect(await statusOf(second, "describeTransaction", { id: job })).toBe(200);
    await claimAttempt(catalog, job.join("$"), {}, runner);
    await expect.poll(() => statusOf(second, "describeTransaction", { id: job })).toBe(401);
    expect(await statusOf(await keyOf(2), "describeTransaction", { id: job })).toBe(200);
  });

  test("expires a minute after the end of its job, and an hour after its last heartbeat", async () => {
    for (const [end, minutes] of [
      [true, 1],
      [false, 60],
    ] as const) {
      await openJob();
      const key = await keyOf(1);
      if (end) await alter({ setStatusAction: { status: "Canceled" } });
      expect(await statusOf(key, "describeTransaction", { id: job })).toBe(200);
      await age(minutes * 60_000 + 1);
      await expect.poll(() => statusOf(key, "describeTransaction", { id: job })).toBe(401);
    }
  });

  test("is created only for the latest attempt of an open job", async () => {
    await openJob();
    const make = (attempt: number) => catalog.call("createJobKey", { id: job, attempt }, runner);
    const stale = await make(2);
    expect([stale.status, stale.error.detail]).toEqual([409, "the job is Queued, and its latest attempt is 1"]);
    await alter({ setStatusAction: { status: "Canceled" } });
    expect((await make(1)).status).toBe(409);
    expect((await catalog.call("createJobKey", { id: ["missing"], attempt: 1 }, runner)).status).toBe(404);
  });

  test("is not listed any more when jobs have continued without it", async () => {
    await openJob();
    await keyOf(1);
    const ended = `job:${job.join("$")} for ann`;
    await alter({ setStatusAction: { status: "Canceled" } });
    await age(61_000);
    await openJob();
    await keyOf(1);
    const principals = (await catalog.call("listApiKeys")).body.api_keys.map(({ principal }) => principal);
    expect(principals).toContain(`job:${job.join("$")} for ann`);
    expect(principals).not.toContain(ended);
  });
});

/** Changes the age of the job's last heartbeat. */
async function age(ms: number): Promise<void> {
  await using store = await openStore(catalog.database);
  await store.write(async (session) => {
    const found = await findJobById(session, job.at(-1) ?? "");
    if (found !== undefined) {
      const past = Date.now() - ms;
      const endedAtMillis = found.endedAtMillis && past;
      await updateJob(session, { ...found, updatedAtMillis: past, heartbeatAtMillis: past, endedAtMillis });
    }
  });
}
