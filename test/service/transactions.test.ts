import type { TransactionStatus } from "@tiltyard/protocol";
import { describe, expect, test } from "vitest";
import { declareTable, stageManifest, uniqueName, useCatalog } from "../support/catalog.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog();

/** Opens a Queued transaction like a job. @returns Its identifier. */
async function openJob(): Promise<string[]> {
  const { id } = await declareTable(catalog);
  const { body } = await catalog.call("openJob", { id, column: "embedding" });
  return body.job_id.split("$");
}

const setStatus = (status: string) => ({ setStatusAction: { status } });
const setProperty = (key: string, value: string, mode?: string) => ({ setPropertyAction: { key, value, mode } });
const unsetProperty = (key: string, mode?: string) => ({ unsetPropertyAction: { key, mode } });

async function alter(id: string[], ...actions: object[]) {
  return catalog.call("alterTransaction", { id, actions });
}

async function describeTransaction(id: string[]) {
  return (await catalog.call("describeTransaction", { id })).body;
}

describe("AlterTableBackfillColumns", () => {
  test("opens a Queued transaction with the fields of the request", async () => {
    const id = await createFilms(catalog);
    await catalog.call("alterTableAddColumns", { id, new_columns: [{ name: "twice", computed: "id * 2" }] });
    const request = { id, column: "twice", concurrency: 4, cluster: null };
    const answer = await catalog.call("alterTableBackfillColumns", request);
    expect(answer.status).toBe(202);
    expect(await describeTransaction(answer.body.job_id.split("$"))).toMatchObject({
      status: "Queued",
      properties: { column: "twice", concurrency: "4" },
    });
  });

  test("is 404 for a table or branch that does not exist, and 400 without a column", async () => {
    const { id } = await declareTable(catalog);
    const missing = { id: [...id, "missing"], column: "c" };
    expect((await catalog.call("alterTableBackfillColumns", missing)).error).toMatchObject({ code: 4 });
    expect((await catalog.call("alterTableBackfillColumns", { id, column: "c", branch: "exp" })).error.code).toBe(22);
    expect((await catalog.call("alterTableBackfillColumns", { id })).error).toMatchObject({ status: 400, code: 13 });
  });
});

describe("AlterTransaction", () => {
  const statuses: TransactionStatus[] = ["Queued", "Running", "Succeeded", "Failed", "Canceled"];
  /** The statuses before each status. */
  const ways: Record<TransactionStatus, TransactionStatus[]> = {
    Queued: [],
    Running: ["Running"],
    Succeeded: ["Running", "Succeeded"],
    Failed: ["Failed"],
    Canceled: ["Canceled"],
  };
  const allowed: Record<TransactionStatus, TransactionStatus[]> = {
    Queued: ["Queued", "Running", "Failed", "Canceled"],
    Running: ["Running", "Succeeded", "Failed", "Canceled"],
    Succeeded: ["Succeeded"],
    Failed: ["Failed"],
    Canceled: ["Canceled"],
  };
  const moves = statuses.flatMap((from) => statuses.map((to) => [from, to] as const));

  test.each(moves)("changes the status from %s to %s", async (from, to) => {
    const id = await openJob();
    await alter(id, setProperty("a", "b"), ...ways[from].map(setStatus));
    const answer = await alter(id, setStatus(to));
    if (allowed[from].includes(to)) {
      expect(answer.body.status).toBe(to);
    } else {
      expect(answer.error).toMatchObject({ status: 409, code: 14 });
      expect(answer.error.detail).toContain(`from ${from} to ${to}`);
    }
    expect((await describeTransaction(id)).status).toBe(allowed[from].includes(to) ? to : from);
  });

  test.each(["running", "RUNNING", "Running", "rUnNiNg"])("accepts the status %s", async (status) => {
    expect((await alter(await openJob(), setStatus(status))).body.status).toBe("Running");
  });

  test("applies actions in order and answers the result", async () => {
    const answer = await alter(
      await openJob(),
      setStatus("Running"),
      setProperty("rows", "1"),
      setProperty("rows", "2"),
      setProperty("gone", "x"),
      unsetProperty("gone"),
      setStatus("Succeeded"),
    );
    expect(answer.body).toMatchObject({ status: "Succeeded", properties: { column: "embedding", rows: "2" } });
    expect(answer.body.properties).not.toHaveProperty("gone");
  });

  test("applies none of the actions when one fails", async () => {
    const id = await openJob();
    const before = await describeTransaction(id);
    const answer = await alter(id, setProperty("a", "b"), setStatus("Running"), setStatus("Queued"));
    expect(answer.error).toMatchObject({ status: 409, code: 14 });
    expect(await describeTransaction(id)).toEqual(before);
  });

  test("follows the modes of setting a property", async () => {
    const id = await openJob();
    expect((await alter(id, setProperty("k", "1", "Fail"))).body.properties).toMatchObject({ k: "1" });
    expect((await alter(id, setProperty("k", "2"))).body.properties).toMatchObject({ k: "2" });
    expect((await alter(id, setProperty("k", "3", "overwrite"))).body.properties).toMatchObject({ k: "3" });
    expect((await alter(id, setProperty("k", "4", "SKIP"))).body.properties).toMatchObject({ k: "3" });
    expect((await alter(id, setProperty("k", "5", "Fail"))).error).toMatchObject({ status: 409, code: 14 });
    expect((await describeTransaction(id)).properties).toMatchObject({ k: "3" });
  });

  test("follows the modes of unsetting a property", async () => {
    const id = await openJob();
    await alter(id, setProperty("k", "1"));
    expect((await alter(id, unsetProperty("k", "Fail"))).body.properties).not.toHaveProperty("k");
    expect((await alter(id, unsetProperty("k"))).status).toBe(200);
    expect((await alter(id, unsetProperty("k", "skip"))).status).toBe(200);
    expect((await alter(id, unsetProperty("k", "fail"))).error).toMatchObject({ status: 409, code: 14 });
  });

  test.each(["note", "reason"])(
    "refuses more than 16 KiB of the property %s, which lists would contain",
    async (key) => {
      const id = await openJob();
      expect((await alter(id, setProperty(key, "x".repeat(16_000)))).status).toBe(200);
      const { error } = await alter(id, setProperty(key, "x".repeat(17_000)));
      expect(error).toMatchObject({ status: 400, detail: expect.stringContaining("at most 16384 characters") });
    },
  );

  test.each<[string, unknown]>([
    ["no actions", []],
    ["actions that are no list", {}],
    ["an action with no member", [{}]],
    ["an unknown action beside a known one", [{ ...setStatus("Running"), setOwnerAction: { owner: "me" } }]],
    ["an action with two members", [{ ...setStatus("Running"), ...unsetProperty("a") }]],
    ["an action with a null member only", [{ setStatusAction: null }]],
    ["a status that does not exist", [setStatus("Paused")]],
    ["a status action without a status", [{ setStatusAction: {} }]],
    ["a property without a value", [{ setPropertyAction: { key: "a" } }]],
    ["a property without a key", [{ setPropertyAction: { value: "a" } }]],
    ["a property that is no string", [{ setPropertyAction: { key: "a", value: 1 } }]],
    ["a mode that does not exist", [setProperty("a", "b", "Merge")]],
    ["a good action before a bad one", [setStatus("Running"), {}]],
  ])("refuses %s", async (_, actions) => {
    const id = await openJob();
    const { error } = await catalog.call("alterTransaction", { id, actions });
    expect(error).toMatchObject({ status: 400, code: 13 });
    expect(error.detail).toContain("actions");
    expect((await describeTransaction(id)).status).toBe("Queued");
  });

  test("accepts null for unused members", async () => {
    const action = { setStatusAction: { status: "Running" }, setPropertyAction: null, unsetPropertyAction: null };
    expect((await alter(await openJob(), action)).body.status).toBe("Running");
  });

  test.each(["Succeeded", "Failed", "Canceled"])("changes nothing of a job that is %s", async (status) => {
    const id = await openJob();
    const ending = [setProperty("reason", "told"), setStatus("Running"), setStatus(status)];
    await alter(id, ...ending);
    const before = await describeTransaction(id);
    const changes = [
      [setProperty("reason", "other")],
      [setProperty("more", "x"), setStatus(status)],
      [unsetProperty("reason")],
    ];
    for (const actions of changes) {
      const { error } = await alter(id, ...actions);
      expect(error).toMatchObject({ status: 409, code: 14 });
      expect(error.detail).toContain(`has ended as ${status}`);
    }
    expect(await describeTransaction(id)).toEqual(before);
    // The response may have been lost, so repeating the current state is not a change.
    expect((await alter(id, setProperty("reason", "told"), setStatus(status))).body).toEqual(before);
    expect((await alter(id, unsetProperty("missing"))).body).toEqual(before);
    expect(await describeTransaction(id)).toEqual(before);
  });

  test("keeps every property of clients that set different ones at once", async () => {
    const id = await openJob();
    const keys = Array.from({ length: 20 }, (_, index) => `key${index}`);
    await Promise.all(keys.map((key) => alter(id, setProperty(key, key))));
    expect(Object.keys((await describeTransaction(id)).properties)).toEqual(expect.arrayContaining(keys));
  });

  test("is 404 for a transaction that does not exist, also under another's namespace", async () => {
    const id = await openJob();
    for (const missing of [["missing"], [...id.slice(0, -1), "missing"], [id.at(-1) ?? ""]]) {
      expect((await alter(missing, setStatus("Running"))).error).toMatchObject({ status: 404, code: 10 });
      expect((await catalog.call("describeTransaction", { id: missing })).error).toMatchObject({
        status: 404,
        code: 10,
      });
    }
  });

  test("accepts an id that a client returns as one part", async () => {
    const job = (await openJob()).join("$");
    const response = await catalog.fetch(`/v1/transaction/${encodeURIComponent(job)}/describe`, {
      method: "POST",
      body: JSON.stringify({ id: [job] }),
    });
    expect(response.status).toBe(200);
  });
});

describe("every mutation", () => {
  test("writes a transaction that names the principal, the operation and its objects", async () => {
    const key = await catalog.keyFor("ada", { $: "admin" });
    const namespace = uniqueName("audited");
    const id = [namespace, "t"];
    const call = (name: Parameters<typeof catalog.call>[0], request: object) =>
      catalog.call(name, request as Record<string, unknown>, { key, headers: { "x-request-id": `request-${name}` } });

    const answers: [string, unknown][] = [];
    const note = async (name: Parameters<typeof catalog.call>[0], request: object) => {
      const { body } = await call(name, request);
      answers.push([name, (body as { transaction_id: unknown }).transaction_id]);
      return body;
    };
    await note("createNamespace", { id: [namespace] });
    const { location } = (await note("declareTable", { id })) as { location: string };
    const table = { id, location };
    await note("createTableVersion", { id, version: 1, manifest_path: stageManifest(table, 1) });
    const entries = [{ id, version: 2, manifest_path: stageManifest(table, 2) }];
    await note("batchCreateTableVersions", { entries });
    const operations = [{ create_table_version: { id, version: 3, manifest_path: stageManifest(table, 3) } }];
    await note("batchCommitTables", { operations });
    await note("batchDeleteTableVersions", { id, ranges: [{ start_version: 1, end_version: 2 }] });
    await note("deregisterTable", { id });
    await note("registerTable", { id, location });
    await note("renameTable", { id, new_table_name: "u" });
    await note("dropTable", { id: [namespace, "u"] });
    await note("dropNamespace", { id: [namespace] });

    for (const [name, transactionId] of answers) {
      const identifier = Array.isArray(transactionId) ? transactionId : String(transactionId).split("$");
      const { status, context } = await describeTransaction(identifier);
      expect(status).toBe("Succeeded");
      expect(context.operation?.toLowerCase()).toBe(name.toLowerCase());
      expect(context).toMatchObject({ principal: "ada", request_id: `request-${name}` });
      expect(context.objects).toContain(namespace);
      expect(Date.parse(context.created_at ?? "")).toBeGreaterThan(Date.now() - 60_000);
    }
    expect(new Set(answers.map(([, transactionId]) => String(transactionId))).size).toBe(answers.length);
  });
});
