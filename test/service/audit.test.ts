import { describe, expect, test, vi } from "vitest";
import { deleteExpiredTransactions } from "../../service/deferred-work.ts";
import { openStore } from "../../service/store/open.ts";
import type { Store } from "../../service/store/store.ts";
import {
  type Answer,
  commit,
  declareTable,
  startTestCatalog,
  type TestCatalog,
  uniqueName,
  useCatalog,
} from "../support/catalog.ts";
import { executeSql } from "../support/database.ts";
import { withOwnClock } from "../support/own-clock.ts";
import { watchedStore } from "../support/watched-store.ts";

const catalog = useCatalog();
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Lists the audit records and jobs of a namespace page by page, the oldest first by default. */
async function transactionsOf(own: TestCatalog, id: readonly string[], options: object = {}) {
  const found = [];
  for (let page_token: string | undefined = ""; page_token !== undefined; ) {
    const { body }: Answer<"listTransactions"> = await own.call("listTransactions", {
      ...{ id, ascending: true, page_token },
      ...options,
    });
    found.push(...body.transactions);
    page_token = body.page_token;
  }
  return found;
}

async function describeNamed(own: TestCatalog, name: string | undefined) {
  return (await own.call("describeTransaction", { id: name?.split("$") ?? [] })).body;
}

describe("an audit record", () => {
  test.each([
    ["a status", { setStatusAction: { status: "Failed" } }],
    ["the status that it has", { setStatusAction: { status: "Succeeded" } }],
    ["a property", { setPropertyAction: { key: "reason", value: "nothing happened here" } }],
    ["a property less", { unsetPropertyAction: { key: "tag" } }],
  ])("cannot be given %s, by its admin either", async (_, action) => {
    const table = await declareTable(catalog);
    const { transaction_id: name = "" } = (await commit(catalog, table, 1)).body;
    const before = await describeNamed(catalog, name);
    const { error } = await catalog.call("alterTransaction", { id: name.split("$"), actions: [action] });
    expect(error).toMatchObject({ status: 409, code: 14 });
    expect(error.detail).toContain("is an audit record (CreateTableVersion), which cannot be altered");
    expect(await describeNamed(catalog, name)).toEqual(before);
  });

  test("records the request and the reason when a change fails", async () => {
    const own = await startTestCatalog(
      {},
      {
        wrapStorage: (storage) => ({
          at: async (location) => ({
            ...(await storage.at(location)),
            create: async () => Promise.reject(new Error("the store is away")),
          }),
        }),
      },
    );
    const table = await declareTable(own);
    await commit(own, table, 1);
    expect((await own.call("createTableTag", { id: table.id, tag: "release", version: 1 })).status).toBe(500);
    const tagging = (await transactionsOf(own, table.id.slice(0, -1))).at(-1);
    expect(tagging).toMatchObject({
      operation: "CreateTableTag",
      status: "Failed",
      properties: { tag: "release", reason: "the service failed" },
    });
    expect(tagging?.updated_at_millis).toBeGreaterThanOrEqual(tagging?.created_at_millis ?? Number.NaN);
    await own.stop();
  });

  test.each([
    "update audit_records set principal = 'another'",
    "update audit_outcomes set reason = null",
    "delete from audit_records",
    "delete from audit_outcomes",
  ])("is kept by the database itself from: %s", async (statement) => {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    await catalog.call("createTableTag", { id: table.id, tag: "release", version: 1 });
    const before = await transactionsOf(catalog, []);
    await expect(executeSql(catalog.database, statement)).rejects.toThrow("the audit is append-only");
    expect(await transactionsOf(catalog, [])).toEqual(before);
  });
});

describe("audit records and jobs", () => {
  test("are listed together, in the order in which they were opened", async () => {
    const namespace = uniqueName("ns");
    const { id } = await declareTable(catalog, namespace);
    const { job_id } = (await catalog.call("openJob", { id, column: "c" })).body;
    const actions = [{ setStatusAction: { status: "Canceled" } }];
    await catalog.call("alterTransaction", { id: job_id.split("$"), actions });
    await catalog.call("renameTable", { id, new_table_name: "renamed" });
    await catalog.call("openJob", { id: [namespace, "renamed"], column: "d" });
    const found = await transactionsOf(catalog, [namespace]);
    expect(found.map(({ operation, status }) => [operation, status])).toEqual([
      ["DeclareTable", "Succeeded"],
      ["OpenJob", "Canceled"],
      ["RenameTable", "Succeeded"],
      ["OpenJob", "Queued"],
    ]);
    // The order is the same with small pages and in reverse.
    expect(await transactionsOf(catalog, [namespace], { limit: 1 })).toEqual(found);
    expect(await transactionsOf(catalog, [namespace], { limit: 1, ascending: false })).toEqual(found.toReversed());
  });
});

/** The settings of a service that does not delete records of the tests itself. */
const kept = { TILTYARD_AUDIT_RETENTION: "40000d" };

describe("retention", () => {
  async function deleteAllExpired(store: Store, retentionMs: number): Promise<number[]> {
    const steps = [];
    for (let deleted = 1; deleted > 0; steps.push(deleted))
      deleted = await deleteExpiredTransactions(store, retentionMs);
    return steps;
  }

  /** Starts a catalog with a history. */
  async function startWithHistory() {
    const own = await startTestCatalog();
    const namespace = uniqueName("old");
    const table = await declareTable(own, namespace);
    await commit(own, table, 1);
    await own.call("createTableTag", { id: table.id, tag: "release", version: 1 });
    for (const status of ["Queued", "Running", "Failed"]) {
      const { job_id } = (await own.call("openJob", { id: table.id, column: status })).body;
      const actions = [{ setStatusAction: { status } }];
      await own.call("alterTransaction", { id: job_id.split("$"), actions });
    }
    return { own, namespace, table };
  }

  test("deletes ended records and keeps open or younger ones", async () => {
    const { own, namespace, table } = await startWithHistory();
    const before = await transactionsOf(own, [namespace]);
    await using store = await openStore(own.database);
    expect(await deleteAllExpired(store, hourMs)).toEqual([0]);
    expect(await transactionsOf(own, [namespace])).toEqual(before);

    // By a clock that is ahead, all records are older.
    await deleteAllExpired(store, -hourMs);
    const kept = await transactionsOf(own, [namespace]);
    expect(kept.map(({ status, properties }) => [status, properties.column])).toEqual([
      ["Queued", "Queued"],
      ["Running", "Running"],
    ]);
    const gone = before.find(({ operation }) => operation === "CreateTableTag");
    expect((await own.call("describeTransaction", { id: gone?.transaction_id.split("$") ?? [] })).status).toBe(404);
    // A table works without the records of its commits, and the audit continues.
    expect((await commit(own, table, 2)).status).toBe(200);
    await own.stop();
  });

  test("keeps records and ended jobs when the clock is 400 days ahead at a start, and when it is corrected", async () => {
    const { own, namespace } = await startWithHistory();
    await using store = withOwnClock(await openStore(own.database));
    expect(await deleteAllExpired(store, 365 * dayMs)).toEqual([0]);
    const before = await transactionsOf(own, [namespace]);
    const now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      for (const ahead of [400 * dayMs, 400 * dayMs + hourMs / 2, hourMs]) {
        vi.setSystemTime(now + ahead);
        expect(await deleteAllExpired(store, 365 * dayMs)).toEqual([0]);
      }
      // The half hour with a clock that was ahead does not count twice.
      vi.setSystemTime(now + 2 * hourMs);
      expect(await deleteAllExpired(store, 3 * hourMs)).toEqual([0]);
      vi.setSystemTime(now + 3 * hourMs);
      expect((await deleteAllExpired(store, 2 * hourMs)).length).toBeGreaterThan(1);
    } finally {
      vi.useRealTimers();
    }
    expect(before.length).toBeGreaterThan(0);
    await own.stop();
  });

  test("keeps the record of an interrupted change whose outcome is unknown", async () => {
    let isKilled = false;
    const onCommit = (statements: readonly string[]) => {
      if (isKilled && statements.some((sql) => /"(audit_records|audit_outcomes)"/.test(sql)))
        throw new Error("the service was killed");
    };
    const own = await startTestCatalog(kept, { wrapStore: (store) => watchedStore(store, { onCommit }) });
    const table = await declareTable(own);
    await commit(own, table, 1);
    isKilled = true;
    await own.call("createTableTag", { id: table.id, tag: "release", version: 1 });
    isKilled = false;
    await using store = await openStore(own.database);
    await deleteAllExpired(store, -hourMs);
    expect((await transactionsOf(own, [])).map(({ operation, status }) => [operation, status])).toEqual([
      ["CreateTableTag", "Running"],
    ]);
    await own.stop();
  });

  test("deletes many records in steps", async () => {
    const own = await startTestCatalog(kept);
    await using store = await openStore(own.database);
    await deleteAllExpired(store, -hourMs);
    await executeSql(
      own.database,
      `with recursive n (i) as (select 1 union all select i + 1 from n where i < 2500)
       insert into audit_records
         (id, namespace, operation, objects, principal, request_id, status, properties, created_at_millis)
       select '0190-' || n.i, '', 'Test', '[["t"]]', 'many', '', 'Running', '{}', 1 from n`,
    );
    const outcomes =
      "insert into audit_outcomes (record_id, status, recorded_at_millis) select id, 'Failed', 2 from audit_records";
    await executeSql(own.database, outcomes);
    expect(await deleteAllExpired(store, hourMs)).toEqual([1000, 1000, 500, 0]);
    expect(await transactionsOf(own, [])).toEqual([]);
    await own.stop();
  });
});
