import { existsSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { runCommandLine } from "../../client/command-line.ts";
import type { ObjectStore } from "../../service/storage/object-store.ts";
import { openStore } from "../../service/store/open.ts";
import { findTable } from "../../service/store/tables.ts";
import { insertVersion } from "../../service/store/versions.ts";
import {
  commit,
  declareTable,
  pathOf,
  startTestCatalog,
  type TestCatalog,
  type TestTable,
  uniqueName,
  useCatalog,
} from "../support/catalog.ts";
import { startCommand } from "../support/command.ts";
import { executeSql } from "../support/database.ts";
import { doDeferredWork } from "../support/deferred-work.ts";
import { versionRecord } from "../support/version-record.ts";

const catalog = useCatalog({ TILTYARD_DROP_RETENTION: "1h" });

const command = (...args: string[]) => {
  const settings = { TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: catalog.adminKey };
  return startCommand(runCommandLine, ["tables", ...args], settings).finished;
};

async function written(on: TestCatalog = catalog): Promise<TestTable> {
  const table = await declareTable(on);
  for (const version of [1, 2]) await commit(on, table, version);
  await commit(on, table, 2, { branch: "dev" });
  return table;
}

/** Returns the id by which a dropped table can be undropped. */
async function droppedId(table: TestTable, on: TestCatalog = catalog): Promise<string | undefined> {
  const { body } = await on.call("listDroppedTables", { id: table.id.slice(0, -1) });
  return body.dropped_tables.map((each) => String(each.dropped_id))[0];
}

async function everyTable(): Promise<readonly string[]> {
  return (await catalog.call("listAllTables", { include_declared: true })).body.tables;
}

/** Inserts records without manifests after the existing ones. */
async function insertVersions({ database }: TestCatalog, table: TestTable, count: number): Promise<void> {
  await using store = await openStore(database);
  await store.write(async (session) => {
    const { id = Number.NaN } = (await findTable(session, table.id)) ?? {};
    for (let version = 3; version < 3 + count; version += 1) await insertVersion(session, versionRecord(id, version));
  });
}

/** Counts the records of all tables, including dropped ones. */
async function countVersions({ database }: TestCatalog): Promise<number> {
  await using store = await openStore(database);
  return (await store.read.db.selectFrom("tableVersions").select("version").execute()).length;
}

describe("a table that is dropped with a retention", () => {
  test("is invisible to clients, and undrop restores its versions, branches and data", async () => {
    const before = await everyTable();
    const table = await written();
    await catalog.call("dropTable", { id: table.id });
    expect((await catalog.call("tableExists", { id: table.id })).status).toBe(404);
    expect(
      (await catalog.call("listTables", { id: table.id.slice(0, 1), include_declared: true })).body.tables,
    ).toEqual([]);
    expect(await everyTable()).toEqual(before);
    await doDeferredWork(catalog.database, { dropRetentionMs: 3_600_000 });

    const id = await droppedId(table);
    const back = await command("undrop", id ?? "");
    expect([back.code, back.stdout]).toEqual([0, `${table.id.join("$")} is back\n`]);
    expect((await catalog.call("describeTable", { id: table.id })).body.location).toBe(table.location);
    expect((await catalog.call("listTableVersions", { id: table.id })).body.versions).toHaveLength(2);
    expect((await commit(catalog, table, 3)).status).toBe(200);
    expect((await commit(catalog, table, 3, { branch: "dev" })).status).toBe(200);
    expect(await droppedId(table)).toBeUndefined();
  });

  test("frees its name, and undrop can use another one", async () => {
    const table = await written();
    await catalog.call("dropTable", { id: table.id });
    expect((await catalog.call("declareTable", { id: table.id })).status).toBe(200);
    const id = (await droppedId(table)) ?? "";
    const listed = JSON.parse((await command("dropped", "--json")).stdout);
    expect(listed).toContainEqual(expect.objectContaining({ id: Number(id), table: table.id.join("$") }));
    const taken = await command("undrop", id);
    expect([taken.code, taken.stderr]).toEqual([1, expect.stringContaining("already exists")]);
    const name = uniqueName("renamed");
    expect((await command("undrop", id, name)).code).toBe(0);
    expect((await catalog.call("describeTable", { id: [name] })).body.location).toBe(table.location);
  });

  test("keeps its location until its time is over, and loses its data then", async () => {
    const table = await written();
    await catalog.call("dropTable", { id: table.id });
    const again = { id: table.id, location: table.location };
    expect((await catalog.call("declareTable", again)).error).toMatchObject({ status: 409, code: 5 });
    expect(existsSync(`/${pathOf(table)}`)).toBe(true);
    const id = (await droppedId(table)) ?? "";
    await doDeferredWork(catalog.database);
    expect(existsSync(`/${pathOf(table)}`)).toBe(false);
    const late = await command("undrop", id);
    expect([late.code, late.stderr]).toEqual([1, expect.stringContaining(`No dropped table ${id} can be undropped`)]);
    expect((await catalog.call("declareTable", again)).status).toBe(200);
  });

  test("leaves nothing when it has many versions, also when that was broken off", async () => {
    let isBroken = true;
    const breaking = (store: ObjectStore): ObjectStore => ({
      ...store,
      deleteFolder: (...args) => (isBroken ? Promise.reject(new Error("broken off")) : store.deleteFolder(...args)),
    });
    const own = await startTestCatalog(
      { TILTYARD_DROP_RETENTION: "0" },
      { wrapStorage: (storage) => ({ at: async (location) => breaking(await storage.at(location)) }) },
    );
    const table = await written(own);
    await insertVersions(own, table, 2_500);
    await own.call("dropTable", { id: table.id });
    const metrics = async () => (await own.fetch("/metrics")).text();
    await expect.poll(metrics).toContain('tiltyard_tasks_failing{kind="purge"} 1');
    expect([await droppedId(table, own), existsSync(`/${pathOf(table)}`)]).toEqual([undefined, true]);
    const again = { id: table.id, location: table.location };
    expect((await own.call("declareTable", again)).status).toBe(409);
    isBroken = false;
    await doDeferredWork(own.database);
    expect([await countVersions(own), existsSync(`/${pathOf(table)}`)]).toEqual([0, false]);
    expect((await own.call("declareTable", again)).status).toBe(200);
    await own.stop();
  });

  test("can be brought back when its namespace was dropped with it", async () => {
    const table = await written();
    await catalog.call("dropNamespace", { id: table.id.slice(0, 1), behavior: "Cascade" });
    const id = (await droppedId(table)) ?? "";
    const homeless = await command("undrop", id);
    expect([homeless.code, homeless.stderr]).toEqual([1, expect.stringMatching(/namespace .* does not exist/)]);
    await catalog.call("createNamespace", { id: table.id.slice(0, 1) });
    expect((await command("undrop", id)).code).toBe(0);
    expect((await catalog.call("listTableVersions", { id: table.id, branch: "dev" })).body.versions).toHaveLength(1);
  });
});

describe("a protected table", () => {
  test("is not dropped, alone or with its namespace, until it is protected no more", async () => {
    const table = await written();
    const name = table.id.join("$");
    expect((await command("protect", name)).stdout).toBe(`${name} is protected\n`);
    expect((await catalog.call("dropTable", { id: table.id })).error).toMatchObject({ status: 409, code: 19 });
    const namespace = { id: table.id.slice(0, 1) };
    for (const refused of [
      await catalog.call("dropNamespace", { ...namespace, behavior: "Cascade" }),
      await catalog.call("createNamespace", { ...namespace, mode: "Overwrite" }),
    ])
      expect(refused.error).toMatchObject({ status: 409, code: 19, detail: expect.stringContaining("is protected") });
    expect((await catalog.call("listTableVersions", { id: table.id })).body.versions).toHaveLength(2);
    expect((await command("unprotect", name)).code).toBe(0);
    expect((await catalog.call("dropTable", { id: table.id })).status).toBe(200);
  });

  test("is one that was declared with the property", async () => {
    const id = [uniqueName("declared")];
    await catalog.call("declareTable", { id, properties: { protected: "true", owner: "ada" } });
    expect((await catalog.call("dropTable", { id })).error.code).toBe(19);
    await command("unprotect", id[0] ?? "");
    expect((await catalog.call("dropTable", { id })).body.properties).toEqual({ owner: "ada" });
  });
});

test("a dropped table stays for its retention when the clock jumps by 30 days, and no longer", async () => {
  const table = await written();
  await catalog.call("dropTable", { id: table.id });
  const minute = 60_000;
  const workAfter = async (ms: number) => {
    vi.advanceTimersByTime(ms);
    await executeSql(catalog.database, "update tasks set not_before = 0, claimed_until = 0 where kind = 'purge'");
    await doDeferredWork(catalog.database, { dropRetentionMs: 60 * minute });
  };
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    await workAfter(30 * 24 * 60 * minute);
    expect(await droppedId(table)).toBeDefined();
    expect(existsSync(`/${pathOf(table)}`)).toBe(true);
    await workAfter(50 * minute);
    expect(existsSync(`/${pathOf(table)}`)).toBe(true);
    await workAfter(15 * minute);
    expect(await droppedId(table)).toBeUndefined();
    expect(existsSync(`/${pathOf(table)}`)).toBe(false);
  } finally {
    vi.useRealTimers();
  }
});

test("a table that is dropped after the clock was set back stays for its retention", async () => {
  const day = 24 * 60 * 60_000;
  const work = () => doDeferredWork(catalog.database, { dropRetentionMs: day / 24 });
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const now = Date.now();
    vi.setSystemTime(now + 30 * day);
    await work();
    vi.setSystemTime(now);
    const table = await written();
    await catalog.call("dropTable", { id: table.id });
    await work();
    expect(await droppedId(table)).toBeDefined();
    expect(existsSync(`/${pathOf(table)}`)).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});
