/** Tests LanceDB's own client for Node, unmodified, with this catalog as its server. */
import {
  BooleanQuery,
  type Connection,
  connect,
  type FullTextQuery,
  Index,
  MatchQuery,
  Occur,
  PhraseQuery,
  type Table,
} from "@lancedb/lancedb";
import { beforeAll, describe, expect, test } from "vitest";
import { uniqueName, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();
let database: Connection;
beforeAll(async () => {
  database = await connect("db://films", { apiKey: catalog.adminKey, hostOverride: catalog.url });
});

const titles = ["the quick dog", "the dog quick", "a cat", "a bird"];
const rows = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => ({
    id: from + index,
    title: titles[(from + index) % titles.length] ?? "",
    vector: [from + index, 0, 0, 0],
  }));

async function createTable(): Promise<Table> {
  return database.createTable(uniqueName("films"), rows(0, 8));
}

const idsOf = async (query: { toArray(): Promise<{ readonly id: number }[]> }) =>
  (await query.toArray()).map(({ id }) => Number(id));

describe("tables", () => {
  test("are created, opened, listed a page at a time, renamed and dropped", async () => {
    const name = uniqueName("films");
    await database.createTable(name, rows(0, 3));
    await expect(database.createTable(name, rows(0, 3))).rejects.toThrow("already exists");
    expect(await (await database.createTable(name, rows(0, 5), { mode: "overwrite" })).countRows()).toBe(5);
    expect(await (await database.createTable(name, rows(0, 1), { existOk: true })).countRows()).toBe(5);
    const next = `${name}_next`;
    await database.createTable(next, rows(0, 3));
    expect(await database.tableNames({ startAfter: name, limit: 1 })).toEqual([next]);
    await database.dropTable(next);
    expect(await database.tableNames()).not.toContain(next);
    await expect(database.openTable(next)).rejects.toThrow("not found");
  });

  test("are in namespaces", async () => {
    const namespace = uniqueName("ns");
    await database.createNamespace([namespace]);
    await database.createTable("inner", rows(0, 3), [namespace]);
    expect(await database.tableNames([namespace])).toEqual(["inner"]);
    expect(await (await database.openTable("inner", [namespace])).countRows()).toBe(3);
    expect((await database.listNamespaces()).namespaces).toContain(namespace);
    await database.dropTable("inner", [namespace]);
    await database.dropNamespace([namespace]);
  });

  test("restores an earlier version, and has tags", async () => {
    const table = await createTable();
    await table.add(rows(8, 10));
    await (await table.tags()).create("first", 1);
    expect(await (await table.tags()).list()).toMatchObject({ first: { version: 1 } });
    await table.checkout("first");
    expect([await table.version(), await table.countRows()]).toEqual([1, 8]);
    await table.restore();
    expect([await table.version(), await table.countRows()]).toEqual([3, 8]);
    expect((await table.listVersions()).map(({ version }) => version).toSorted()).toEqual([1, 2, 3]);
    await expect(table.checkout(99)).rejects.toThrow("version: 99");
    await expect((await table.tags()).create("late", 99)).rejects.toThrow("has no version 99");
  });

  test("have branches", async () => {
    const table = await createTable();
    const branch = await (await table.branches()).create("side");
    await branch.add(rows(8, 9));
    expect([await branch.countRows(), await table.countRows()]).toEqual([9, 8]);
    expect(Object.keys(await (await table.branches()).list())).toEqual(["side"]);
    // The client's own words for a 409.
    await expect((await table.branches()).create("side")).rejects.toThrow("(branch: side)' already exists");
    await (await table.branches()).delete("side");
  });
});

describe("rows", () => {
  test("are added, merged, updated, deleted and counted", async () => {
    const table = await createTable();
    expect((await table.add(rows(8, 10))).version).toBe(2);
    const merge = table.mergeInsert("id").whenMatchedUpdateAll().whenNotMatchedInsertAll();
    expect(await merge.execute(rows(9, 12))).toMatchObject({ numUpdatedRows: 1, numInsertedRows: 2, numRows: 3 });
    expect(await table.update({ where: "id < 2", values: { title: "none" } })).toMatchObject({ rowsUpdated: 2 });
    expect(await table.delete("id >= 10")).toMatchObject({ numDeletedRows: 2 });
    expect([await table.countRows(), await table.countRows("title = 'none'")]).toEqual([10, 2]);
    await table.add(rows(0, 2), { mode: "overwrite" });
    expect(await table.countRows()).toBe(2);
  });

  test("are read with a filter, in pages, and with columns of expressions", async () => {
    const table = await createTable();
    expect(await idsOf(table.query().where("id > 2").offset(1).limit(2))).toEqual([4, 5]);
    expect(await idsOf(table.query())).toHaveLength(8);
    const twice = await table.query().where("id = 3").select({ twice: "id * 2" }).toArray();
    expect(twice.map((row) => Number(row.twice))).toEqual([6]);
  });

  test("are found by one vector and by several, with an index and without", async () => {
    const table = await createTable();
    const search = () => table.search([5.2, 0, 0, 0]).limit(2);
    expect(await idsOf(search())).toEqual([5, 6]);
    await table.createIndex("vector", { config: Index.ivfFlat({ numPartitions: 1 }), waitTimeoutSeconds: 30 });
    expect(await idsOf(search())).toEqual([5, 6]);
    expect(await table.indexStats("vector_idx")).toMatchObject({ numIndexedRows: 8, numUnindexedRows: 0 });
    const both = table.query().nearestTo([0, 0, 0, 0]).addQueryVector([7, 0, 0, 0]).limit(1);
    expect((await idsOf(both)).toSorted()).toEqual([0, 7]);
    expect(await search().explainPlan()).toContain("ANN");
    await table.prewarmIndex("vector_idx");
    expect((await table.listIndices()).map(({ name }) => name)).toEqual(["vector_idx"]);
    await table.dropIndex("vector_idx");
    expect(await table.indexStats("vector_idx")).toBeUndefined();
  });

  test("are found by their words, in their order too", async () => {
    const table = await createTable();
    await table.createIndex("title", { config: Index.fts({ withPosition: true }), waitTimeoutSeconds: 30 });
    const find = async (query: string | FullTextQuery) =>
      (await idsOf(table.query().fullTextSearch(query).limit(10))).toSorted();
    expect(await find("cat")).toEqual([2, 6]);
    expect(await find(new MatchQuery("bird", "title"))).toEqual([3, 7]);
    const phrase = new PhraseQuery("quick dog", "title");
    expect(await find(phrase)).toEqual([0, 4]);
    const boolean = new BooleanQuery([
      [Occur.Must, new MatchQuery("quick", "title")],
      [Occur.MustNot, phrase],
    ]);
    expect(await find(boolean)).toEqual([1, 5]);
  });
});

test("columns are added, changed and dropped", async () => {
  const table = await createTable();
  await table.addColumns([{ name: "twice", valueSql: "id * 2" }]);
  await table.alterColumns([{ path: "twice", rename: "double" }]);
  expect((await table.schema()).names).toEqual(["id", "title", "vector", "double"]);
  await table.dropColumns(["double"]);
  expect((await table.schema()).names).toEqual(["id", "title", "vector"]);
  await expect(table.dropColumns(["double"])).rejects.toThrow("does not exist");
});

test("returns statistics, and a clear error for missing objects", async () => {
  const table = await createTable();
  expect(await table.stats()).toMatchObject({ numRows: 8, numIndices: 0 });
  await expect((await table.branches()).diff("side")).rejects.toThrow("this catalog has no operation");
});
