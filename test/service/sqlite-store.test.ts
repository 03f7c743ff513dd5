import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CatalogError } from "@tiltyard/protocol";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { findNamespace, insertNamespace, listChildNamespaces } from "../../service/store/namespaces.ts";
import { openSqliteStore } from "../../service/store/sqlite.ts";

function temporaryFile(): string {
  return join(mkdtempSync(join(tmpdir(), "tiltyard-store-")), "catalog.sqlite");
}

const namespace = (name: string) => ({ identifier: [name], properties: {} });

describe("the SQLite store", () => {
  test("rolls back the one of many concurrent writes that throws, and keeps the others", async () => {
    await using store = await openSqliteStore(temporaryFile());
    const writes = Array.from({ length: 40 }, (_, index) =>
      store.write(async (session) => {
        await insertNamespace(session, namespace(`ns${String(index).padStart(2, "0")}`));
        if (index % 4 === 0) throw new CatalogError("InvalidInput", `refused ${index}`);
        return index;
      }),
    );
    const settled = await Promise.allSettled(writes);
    const kept = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    expect(kept).toEqual(Array.from({ length: 40 }, (_, index) => index).filter((index) => index % 4 !== 0));
    const names = await listChildNamespaces(store.read, [], "", 100);
    expect(names).toEqual(kept.map((index) => `ns${String(index).padStart(2, "0")}`));
  });

  test("lets a write see what an earlier one of its group did, and readers see it after the answer", async () => {
    await using store = await openSqliteStore(temporaryFile());
    const first = store.write((session) => insertNamespace(session, namespace("a")));
    const second = store.write((session) => findNamespace(session, ["a"]));
    await first;
    expect(await second).toEqual(namespace("a"));
    expect(await findNamespace(store.read, ["a"])).toEqual(namespace("a"));
  });

  test("rolls back a write that breaks a constraint, as a bug and not as a conflict", async () => {
    await using store = await openSqliteStore(temporaryFile());
    await expect(
      store.write((session) => insertNamespace(session, { identifier: ["no", "parent"], properties: {} })),
    ).rejects.toThrow(/FOREIGN KEY/);
    expect(await findNamespace(store.read, ["no", "parent"])).toBeUndefined();
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

  test("finishes what it took on before it closes", async () => {
    const file = temporaryFile();
    const store = await openSqliteStore(file);
    const write = store.write((session) => insertNamespace(session, namespace("last")));
    await store[Symbol.asyncDispose]();
    await write;
    await using again = await openSqliteStore(file);
    expect(await findNamespace(again.read, ["last"])).toEqual(namespace("last"));
  });

  test("opens a database that it migrated before, and refuses a file that is none", async () => {
    const file = temporaryFile();
    for (let time = 0; time < 2; time++) await (await openSqliteStore(file))[Symbol.asyncDispose]();
    const { writeFileSync } = await import("node:fs");
    const broken = temporaryFile();
    writeFileSync(broken, "this is not a database at all, it is a text".repeat(50));
    await expect(openSqliteStore(broken)).rejects.toThrow(/not a database/);
  });
});
