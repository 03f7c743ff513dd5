import { afterEach, expect, test } from "vitest";
import { parseLocation } from "../../service/storage/location.ts";
import { insertAuditRecord } from "../../service/store/audit.ts";
import { insertNamespace, listChildNamespaces } from "../../service/store/namespaces.ts";
import { openStore } from "../../service/store/open.ts";
import type { Store } from "../../service/store/store.ts";
import { insertTable, renameTable } from "../../service/store/tables.ts";
import { deleteTask, holdTask, insertTask } from "../../service/store/tasks.ts";
import { insertVersion } from "../../service/store/versions.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { runSql } from "../support/postgres-server.ts";
import { versionRecord } from "../support/version-record.ts";

const databases: TestDatabase[] = [];
afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop();
});

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  databases.push(database);
  return database;
}

const namespace = (name: string) => ({ identifier: [name], properties: {} });

async function twoTables(store: Store): Promise<[number, number]> {
  return store.write(async (session) => {
    const first = await insertTable(session, {
      identifier: ["a"],
      location: parseLocation("file:///a"),
      properties: {},
    });
    const second = await insertTable(session, {
      identifier: ["b"],
      location: parseLocation("file:///b"),
      properties: {},
    });
    return [first.id, second.id];
  });
}

test("a server that is older than PostgreSQL 14 is refused by its version", async () => {
  const { database, url } = await newDatabase();
  const name = new URL(url).pathname.slice(1);
  // PostgreSQL's own settings of its version cannot be changed.
  await runSql(url, "create function current_setting(text) returns text language sql return '130022'");
  await runSql(url, `alter database ${name} set search_path = public, pg_catalog`);
  await expect(openStore(database)).rejects.toThrow(/runs PostgreSQL 13, and the catalog requires 14 or later/);
});

test("a write that always conflicts is retried and finally fails with 503", async () => {
  const { database, url } = await newDatabase();
  await using store = await openStore(database);
  const [table] = await twoTables(store);
  let attempts = 0;
  const write = store.write(async (session) => {
    attempts += 1;
    await listChildNamespaces(session, [], "", 1);
    // Another writer always commits first.
    await runSql(url, "update tables set properties = '{}' where id = $1", [table]);
    await renameTable(session, table, ["c"]);
  });
  await expect(write).rejects.toMatchObject({ kind: "ServiceUnavailable", retryAfterSeconds: 1 });
  expect(attempts).toBe(15);
});

test("a write that needs a task sees that another one has deleted it meanwhile", async () => {
  const { database } = await newDatabase();
  await using store = await openStore(database);
  const task = { kind: "adopt", subject: "a table" } as const;
  await store.write((session) => insertTask(session, task));
  let attempts = 0;
  const isHeld = await store.write(async (session) => {
    attempts += 1;
    // The first query fixes the snapshot of the transaction.
    await listChildNamespaces(session, [], "", 1);
    if (attempts === 1) await store.write((other) => deleteTask(other, task));
    return holdTask(session, task);
  });
  expect({ isHeld, attempts }).toEqual({ isHeld: false, attempts: 2 });
});

test("two writes that wait for each other both succeed", async () => {
  const { database } = await newDatabase();
  await using store = await openStore(database);
  const [a, b] = await twoTables(store);
  // Both have changed their first table before either changes its second one, which is a deadlock.
  let waiting = 0;
  let go = () => {};
  const bothAreReady = new Promise<void>((resolve) => {
    go = resolve;
  });
  const write = (first: number, second: number, name: string) => {
    let isFirstAttempt = true;
    return store.write(async (session) => {
      await renameTable(session, first, [`${name}1`]);
      if (isFirstAttempt) {
        isFirstAttempt = false;
        waiting += 1;
        if (waiting === 2) go();
        await bothAreReady;
      }
      await renameTable(session, second, [`${name}2`]);
      return name;
    });
  };
  expect(await Promise.all([write(a, b, "x"), write(b, a, "y")])).toEqual(["x", "y"]);
});

test("text that PostgreSQL cannot store is an error of the caller", async () => {
  const { database } = await newDatabase();
  await using store = await openStore(database);
  const [table] = await twoTables(store);
  const version = store.write((session) =>
    insertVersion(session, versionRecord(table, 1, { eTag: "with \u0000 in it" })),
  );
  await expect(version).rejects.toMatchObject({ kind: "InvalidInput", message: expect.stringContaining("U+0000") });
  const long = Array.from({ length: 5_000 }, () => crypto.randomUUID()).join("");
  await expect(store.write((session) => insertNamespace(session, namespace(long)))).rejects.toMatchObject({
    kind: "InvalidInput",
    message: expect.stringContaining("too long"),
  });
});

test("a failed query fails its write, even if the work continued", async () => {
  const { database } = await newDatabase();
  await using store = await openStore(database);
  const write = store.write(async (session) => {
    await insertNamespace(session, { identifier: ["no", "parent"], properties: {} }).catch(() => {});
    return "done";
  });
  await expect(write).rejects.toThrow("rolled back instead of committed");
});

test("a bug's error names no row of a table", async () => {
  const { database } = await newDatabase();
  await using store = await openStore(database);
  const record = {
    ...{ id: "same", namespace: [], operation: "x", objects: [], principal: "a secret name", requestId: "" },
    ...{ status: "Succeeded" as const, properties: {} },
  };
  await store.write((session) => insertAuditRecord(session, record));
  const error = await store.write((session) => insertAuditRecord(session, record)).catch((each: unknown) => each);
  expect(error).toMatchObject({ message: expect.stringContaining("duplicate key"), code: "23505" });
  expect(Object.keys(error as Error)).toEqual(["name", "code"]);
  expect(JSON.stringify(error)).not.toContain("same");
});

test("connections that die are replaced", async () => {
  const { database, url } = await newDatabase();
  await using store = await openStore(database);
  await listChildNamespaces(store.read, [], "", 1);
  const others =
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
  const killed = store.write(async (session) => {
    await insertNamespace(session, namespace("killed"));
    await runSql(url, others);
    await insertNamespace(session, namespace("never"));
  });
  await expect(killed).rejects.toMatchObject({ kind: "ServiceUnavailable" });
  await store.write((session) => insertNamespace(session, namespace("next")));
  expect(await listChildNamespaces(store.read, [], "", 10)).toEqual(["next"]);
});

test("a database that a later release has changed already still serves this one", async () => {
  const { database, url } = await newDatabase();
  await (await openStore(database))[Symbol.asyncDispose]();
  await runSql(url, "insert into kysely_migration (name, timestamp) values ('9999-later', '2030')");
  await runSql(url, "alter table namespaces add column added_later text default 'x'");
  await using store = await openStore(database);
  await store.write((session) => insertNamespace(session, namespace("a")));
  expect(await listChildNamespaces(store.read, [], "", 10)).toEqual(["a"]);
});

test.each(["audit_records", "audit_outcomes"])("%s cannot be emptied", async (table) => {
  const { database, url } = await newDatabase();
  await using _ = await openStore(database);
  await expect(runSql(url, `truncate ${table}`)).rejects.toThrow("the audit is append-only");
});

test("a schema may change under an open store", async () => {
  const { database, url } = await newDatabase();
  await using store = await openStore(database);
  const [table] = await twoTables(store);
  const commit = (version: number) => store.write((session) => insertVersion(session, versionRecord(table, version)));
  await commit(1);
  await runSql(url, "alter table table_versions add column added_later text default 'x'");
  await commit(2);
});

test("a migration waits for the one that another replica runs", async () => {
  const { database } = await newDatabase();
  const stores = await Promise.all(Array.from({ length: 6 }, () => openStore(database)));
  await Promise.all(
    stores.map((store, index) => store.write((session) => insertNamespace(session, namespace(`${index}`)))),
  );
  for (const store of stores) await store[Symbol.asyncDispose]();
});
