import { copyFileSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { parseLocation } from "../../service/storage/location.ts";
import { findNamespace, insertNamespace, listChildNamespaces } from "../../service/store/namespaces.ts";
import { openSqliteStore } from "../../service/store/sqlite.ts";
import type { Store } from "../../service/store/store.ts";
import { insertTable, listAllTables, listTables } from "../../service/store/tables.ts";
import { insertVersion } from "../../service/store/versions.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { versionRecord } from "../support/version-record.ts";

function temporaryFile(): string {
  return join(temporaryFolder("tiltyard-store-"), "catalog.sqlite");
}

const namespace = (name: string) => ({ identifier: [name], properties: {} });

function replaceByCopy(file: string): void {
  renameSync(file, `${file}-moved`);
  copyFileSync(`${file}-moved`, file);
}

describe("the SQLite store", () => {
  test("lets a write see what an earlier one of its group did, and readers see it after the answer", async () => {
    await using store = await openSqliteStore(temporaryFile());
    const first = store.write((session) => insertNamespace(session, namespace("a")));
    const second = store.write((session) => findNamespace(session, ["a"]));
    await first;
    expect(await second).toEqual(namespace("a"));
    expect(await findNamespace(store.read, ["a"])).toEqual(namespace("a"));
  });

  test("yields to the event loop during a long transaction", async () => {
    await using store = await openSqliteStore(temporaryFile());
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    await store.write(async (session) => {
      setImmediate(count);
      for (let number = 0; number < 3_000; number += 1) await findNamespace(session, ["a"]);
    });
    isOver = true;
    expect(turns).toBeGreaterThanOrEqual(10);
  });

  test("finds the only written table among 20,000 declared ones, and yields to the event loop meanwhile", async () => {
    const file = temporaryFile();
    await using store = await openSqliteStore(file);
    const other = new Database(file);
    onTestFinished(() => void other.close());
    other.exec(`insert into tables (namespace, name, location, properties, created_at_millis)
      with recursive n (i) as (select 1 union all select i + 1 from n where i < 20000)
      select '', printf('t%05d', i), 'file:///t/' || i, '{}', 1 from n`);
    await store.write((session) => insertVersion(session, versionRecord(19_990, 1)));
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const page = { limit: 10, includeDeclared: false };
    expect(await listTables(store.read, [], "", page)).toEqual(["t19990"]);
    expect(await listAllTables(store.read, [], page)).toEqual([["t19990"]]);
    isOver = true;
    expect(turns).toBeGreaterThanOrEqual(20);
  });

  test("reads what it committed, though it has cached the state before that in the same turn", async () => {
    await using store = await openSqliteStore(temporaryFile());
    const list = () => store.read.cached("list", () => listChildNamespaces(store.read, [], "", 100));
    await store.write(async (session) => {
      await insertNamespace(session, namespace("a"));
      expect(await list()).toEqual([]);
    });
    expect(await list()).toEqual(["a"]);
  });

  test("reads what another process has committed as soon as it has, and nothing before", async () => {
    const file = temporaryFile();
    await using store = await openSqliteStore(file);
    await using other = await openSqliteStore(file);
    const written = other.write(async (session) => {
      await insertNamespace(session, namespace("a"));
      expect(await findNamespace(store.read, ["a"])).toBeUndefined();
    });
    await written;
    expect(await findNamespace(store.read, ["a"])).toEqual(namespace("a"));
  });

  test("waits for a transaction of another store in the same process, which yields", async () => {
    const file = temporaryFile();
    await using store = await openSqliteStore(file);
    await using other = await openSqliteStore(file);
    const long = other.write(async (session) => {
      for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
      await insertNamespace(session, namespace("a"));
    });
    await new Promise(setImmediate);
    await store.write((session) => insertNamespace(session, namespace("b")));
    await long;
    expect(await listChildNamespaces(store.read, [], "", 100)).toEqual(["a", "b"]);
  });

  test("reads once for a key, and again after a commit of its own or of another process", async () => {
    const file = temporaryFile();
    await using store = await openSqliteStore(file);
    await using other = await openSqliteStore(file);
    const list = (from: Store) =>
      from.read.cached("list", async () => {
        reads += 1;
        return listChildNamespaces(from.read, [], "", 100);
      });
    let reads = 0;
    for (const writer of [store, other]) {
      const name = writer === store ? "a" : "b";
      await writer.write((session) => insertNamespace(session, namespace(name)));
      await new Promise(setImmediate);
      for (const from of [store, other]) {
        reads = 0;
        const results = [await list(from), await list(from)];
        await new Promise(setImmediate);
        results.push(await list(from));
        expect(results).toEqual(Array(3).fill(writer === store ? ["a"] : ["a", "b"]));
        expect(reads).toBe(1);
      }
    }
  });

  test("caches neither a result during whose reading something was committed, nor a failure", async () => {
    await using store = await openSqliteStore(temporaryFile());
    const during = await store.read.cached("list", async () => {
      const before = await listChildNamespaces(store.read, [], "", 100);
      await store.write((session) => insertNamespace(session, namespace("a")));
      await store.read.cached("of another", async () => ["other"]);
      return before;
    });
    expect(during).toEqual([]);
    expect(await store.read.cached("list", async () => ["again"])).toEqual(["again"]);
    await expect(store.read.cached("other", () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
    expect(await store.read.cached("other", async () => ["read"])).toEqual(["read"]);
  });

  test("accepts writes again after the disk was full", async () => {
    const file = temporaryFile();
    await using store = await openSqliteStore(file);
    const table = { identifier: ["table"], location: parseLocation("file:///table"), properties: {} };
    await store.write((session) => insertTable(session, table));
    // SQLite's error is the same if a table has no free row id left.
    const other = new Database(file);
    onTestFinished(() => void other.close());
    const setLast = other.prepare<[bigint]>("update sqlite_sequence set seq = ?");
    setLast.run(2n ** 63n - 1n);
    const limited = store.write(async (session) => {
      await insertNamespace(session, namespace("before"));
      await insertTable(session, { ...table, identifier: ["other"], location: parseLocation("file:///other") });
    });
    await expect(limited).rejects.toMatchObject({
      kind: "ServiceUnavailable",
      retryAfterSeconds: 1,
      cause: { code: "SQLITE_FULL" },
    });
    setLast.run(1n);
    await store.write((session) => insertNamespace(session, namespace("after")));
    expect(await listChildNamespaces(store.read, [], "", 100)).toEqual(["after"]);
  });

  test.each([
    ["deleted", (file: string) => rmSync(file)],
    ["moved", (file: string) => renameSync(file, `${file}-moved`)],
    ["replaced by a copy", replaceByCopy],
  ])("commits nothing when only the database file was %s, and says what happened", async (_, remove) => {
    const file = temporaryFile();
    await using store = await openSqliteStore(file);
    await store.write((session) => insertNamespace(session, namespace("before")));
    remove(file);
    await expect(store.write((session) => insertNamespace(session, namespace("after")))).rejects.toMatchObject({
      kind: "ServiceUnavailable",
      cause: { message: expect.stringMatching(/was deleted, moved or replaced .* are still in the open files/) },
    });
    expect(await listChildNamespaces(store.read, [], "", 100)).toEqual(["before"]);
  });

  test.each([
    ["deleted", () => undefined],
    ["replaced", openSqliteStore],
  ])("commits nothing to a file whose folder was %s, and says which file", async (_, replace) => {
    const file = temporaryFile();
    await using store = await openSqliteStore(file);
    await store.write((session) => insertNamespace(session, namespace("before")));
    expect(await listChildNamespaces(store.read, [], "", 100)).toEqual(["before"]);
    rmSync(dirname(file), { recursive: true });
    await using _replaced = await replace(file);
    await expect(store.write((session) => insertNamespace(session, namespace("after")))).rejects.toMatchObject({
      kind: "ServiceUnavailable",
      cause: { message: expect.stringContaining(file) },
    });
    expect(await listChildNamespaces(store.read, [], "", 100)).toEqual(["before"]);
  });

  test("creates files that only their owner may read, because they have sources and parameters of jobs", async () => {
    const file = temporaryFile();
    await using _store = await openSqliteStore(file);
    for (const each of [file, `${file}-wal`]) expect((statSync(each).mode & 0o777).toString(8)).toBe("600");
  });

  test("commits durably, in WAL mode", async () => {
    const file = temporaryFile();
    await using _store = await openSqliteStore(file);
    const other = new Database(file);
    expect(other.pragma("journal_mode", { simple: true })).toBe("wal");
    other.close();
  });

  test("refuses a file that is no database", async () => {
    const { writeFileSync } = await import("node:fs");
    const broken = temporaryFile();
    writeFileSync(broken, "this is not a database at all, it is a text".repeat(50));
    await expect(openSqliteStore(broken)).rejects.toThrow(/not a database/);
  });
});
