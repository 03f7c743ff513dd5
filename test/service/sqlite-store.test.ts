import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { findNamespace, insertNamespace, listChildNamespaces } from "../../service/store/namespaces.ts";
import { openSqliteStore } from "../../service/store/sqlite.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

function temporaryFile(): string {
  return join(temporaryFolder("tiltyard-store-"), "catalog.sqlite");
}

const namespace = (name: string) => ({ identifier: [name], properties: {} });

describe("the SQLite store", () => {
  test("lets a write see what an earlier one of its group did, and readers see it after the answer", async () => {
    await using store = await openSqliteStore(temporaryFile());
    const first = store.write((session) => insertNamespace(session, namespace("a")));
    const second = store.write((session) => findNamespace(session, ["a"]));
    await first;
    expect(await second).toEqual(namespace("a"));
    expect(await findNamespace(store.read, ["a"])).toEqual(namespace("a"));
  });

  test("reads what it committed, though it has read in the same turn before that", async () => {
    await using store = await openSqliteStore(temporaryFile());
    await store.write(async (session) => {
      await insertNamespace(session, namespace("a"));
      expect(await findNamespace(store.read, ["a"])).toBeUndefined();
    });
    expect(await findNamespace(store.read, ["a"])).toEqual(namespace("a"));
  });

  test("reads one state in a turn, and in the next what another process has committed", async () => {
    const file = temporaryFile();
    await using store = await openSqliteStore(file);
    await using other = await openSqliteStore(file);
    const written = other.write(async (session) => {
      await insertNamespace(session, namespace("a"));
      expect(await findNamespace(store.read, ["a"])).toBeUndefined();
    });
    await written;
    expect(await findNamespace(store.read, ["a"])).toBeUndefined();
    await new Promise(setImmediate);
    expect(await findNamespace(store.read, ["a"])).toEqual(namespace("a"));
  });

  test("takes up writes again after the disk was full", async () => {
    const file = temporaryFile();
    await using store = await openSqliteStore(file);
    const limited = store.write(async (session) => {
      for (let index = 0; index < 50; index++)
        await insertNamespace(session, { identifier: [`ns${index}`], properties: { filler: "x".repeat(100_000) } });
      throw new Database.SqliteError("database or disk is full", "SQLITE_FULL");
    });
    await expect(limited).rejects.toMatchObject({ kind: "ServiceUnavailable", retryAfterSeconds: 1 });
    await store.write((session) => insertNamespace(session, namespace("after")));
    expect(await listChildNamespaces(store.read, [], "", 100)).toEqual(["after"]);
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
