import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { originOf } from "../../service/domain/transaction.ts";
import { batchCreateTableVersions } from "../../service/operations/table-version.ts";
import { createQueries, SqliteRecordsDialect } from "../../service/store/queries.ts";
import { uncached } from "../../service/store/store.ts";
import {
  commit,
  declareTable,
  finalName,
  pathOf,
  stageManifest,
  type TestTable,
  uniqueName,
  useCatalog,
} from "../support/catalog.ts";

const catalog = useCatalog();

async function versionsOf(table: TestTable): Promise<number[]> {
  return (await catalog.call("listTableVersions", { id: table.id })).body.versions.map((each) => each.version);
}

function entry(table: TestTable, version: number, branch?: string) {
  return {
    id: table.id,
    version,
    manifest_path: stageManifest(table, version, branch === undefined ? {} : { branch }),
    branch,
  };
}

/** Returns a table that a batch can declare, and its location in the warehouse. */
function tableNextTo({ id: [namespace = ""], location: uri }: TestTable) {
  const location = `${uniqueName("batch")}/new`;
  return {
    newTable: { id: [namespace, "new"], location: uri.replace(/\/warehouse\/.*/, `/warehouse/${location}`) },
    location,
  };
}

describe("BatchCreateTableVersions", () => {
  test("commits to several tables and branches, and answers in the order of the request", async () => {
    const [one, two] = [await declareTable(catalog), await declareTable(catalog)];
    await commit(catalog, one, 1);
    const entries = [entry(two, 5), entry(one, 2), entry(one, 2, "exp"), entry(one, 3)];
    const { versions } = (await catalog.call("batchCreateTableVersions", { entries })).body;
    expect(versions.map((each) => each.manifest_path)).toEqual([
      `${pathOf(two)}/_versions/${finalName(5)}`,
      `${pathOf(one)}/_versions/${finalName(2)}`,
      `${pathOf(one)}/tree/exp/_versions/${finalName(2)}`,
      `${pathOf(one)}/_versions/${finalName(3)}`,
    ]);
    for (const { manifest_path } of versions) expect(existsSync(`/${manifest_path}`)).toBe(true);
  });

  test("commits nothing when one of them conflicts", async () => {
    const [one, two] = [await declareTable(catalog), await declareTable(catalog)];
    await commit(catalog, two, 1);
    const entries = [entry(one, 1), entry(two, 3)];
    expect((await catalog.call("batchCreateTableVersions", { entries })).error).toMatchObject({
      status: 409,
      code: 14,
    });
    expect([await versionsOf(one), await versionsOf(two)]).toEqual([[], [1]]);
    expect(existsSync(`/${entries[0]?.manifest_path}`)).toBe(true);
  });

  test("is refused with a version that it has twice", async () => {
    const table = await declareTable(catalog);
    const entry = { id: table.id, version: 1, manifest_path: stageManifest(table, 1) };
    const { error } = await catalog.call("batchCreateTableVersions", { entries: [entry, entry] });
    expect([error.status, error.detail]).toEqual([409, expect.stringContaining("the batch has version 1 twice")]);
    expect((await catalog.call("listTableVersions", { id: table.id })).body.versions).toEqual([]);
  });

  test("commits nothing when a table or a manifest is missing", async () => {
    const one = await declareTable(catalog);
    const missing = { ...entry(one, 1), id: [one.id[0], "missing"] };
    const noTable = await catalog.call("batchCreateTableVersions", { entries: [entry(one, 1), missing] });
    expect(noTable.error).toMatchObject({ status: 404, code: 4 });
    const unstaged = { ...entry(one, 2), manifest_path: `${pathOf(one)}/_versions/${finalName(2)}-none` };
    const noManifest = await catalog.call("batchCreateTableVersions", { entries: [entry(one, 1), unstaged] });
    expect(noManifest.error).toMatchObject({ status: 400, code: 13 });
    expect(await versionsOf(one)).toEqual([]);
  });

  test("answers a repeated batch with the same versions", async () => {
    const table = await declareTable(catalog);
    const entries = [entry(table, 1), entry(table, 2)];
    const first = await catalog.call("batchCreateTableVersions", { entries });
    const again = await catalog.call("batchCreateTableVersions", { entries });
    expect(again.body).toEqual(first.body);
  });

  test.each([[[]], [[{}]], [[{ id: ["a", ""], version: 1, manifest_path: "x" }]], [null]])(
    "refuses the entries %j",
    async (entries) => {
      expect((await catalog.call("batchCreateTableVersions", { entries })).error).toMatchObject({
        status: 400,
        code: 13,
      });
    },
  );

  test("does not begin with all of a batch whose first entry is refused", async () => {
    let begun = 0;
    const prepare = () => {
      begun += 1;
      return { reader: true, all: () => [] } as never;
    };
    const db = createQueries(new SqliteRecordsDialect({ database: { prepare, close: () => undefined } }));
    const entries = Array(1_000).fill({ id: ["missing"], version: 1, manifest_path: "x" });
    const caller = { ...originOf({ name: "any", grants: [] }), operation: "any", body: new ReadableStream() };
    const batch = batchCreateTableVersions(
      { entries } as never,
      { store: { read: { db, cached: uncached } } } as never,
      caller,
    );
    await expect(batch).rejects.toMatchObject({ kind: "TableNotFound" });
    // Each version would wait for a database connection and block requests of other clients.
    expect(begun).toBeLessThan(20);
  });
});

describe("BatchCommitTables", () => {
  test("carries out operations of every kind in one transaction", async () => {
    const written = await declareTable(catalog);
    const [namespace] = written.id;
    for (const version of [1, 2]) await commit(catalog, written, version);
    const leaving = await declareTable(catalog, namespace);
    const { newTable, location } = tableNextTo(written);
    const { body } = await catalog.call("batchCommitTables", {
      operations: [
        { declare_table: { id: newTable.id, location, properties: { a: "b" } } },
        { create_table_version: entry(newTable, 1) },
        { create_table_version: entry(written, 3) },
        { delete_table_versions: { id: written.id, ranges: [{ start_version: 1, end_version: 2 }] } },
        { deregister_table: { id: leaving.id } },
      ],
    });
    expect(body.results).toMatchObject([
      { declare_table: { location: newTable.location, properties: { a: "b" }, managed_versioning: true } },
      { create_table_version: { version: { version: 1 } } },
      { create_table_version: { version: { version: 3 } } },
      { delete_table_versions: { deleted_count: 1 } },
      { deregister_table: { id: leaving.id, location: leaving.location } },
    ]);
    expect(await versionsOf(newTable)).toEqual([1]);
    expect(await versionsOf(written)).toEqual([2, 3]);
    expect((await catalog.call("tableExists", { id: leaving.id })).status).toBe(404);
  });

  test("commits to a table that it declares and whose versions it deletes", async () => {
    const { newTable, location } = tableNextTo(await declareTable(catalog));
    const { status } = await catalog.call("batchCommitTables", {
      operations: [
        { declare_table: { id: newTable.id, location } },
        { delete_table_versions: { id: newTable.id, ranges: [{ start_version: 0, end_version: -1 }] } },
        { create_table_version: entry(newTable, 1) },
      ],
    });
    expect(status).toBe(200);
    expect(await versionsOf(newTable)).toEqual([1]);
  });

  test("distinguishes tables whose joined names are equal", async () => {
    const namespace = uniqueName("batch");
    for (const id of [[namespace], [namespace, "a"]]) await catalog.call("createNamespace", { id });
    const id = [namespace, "a", "b"];
    const { location } = (await catalog.call("declareTable", { id })).body;
    const operations = [
      { declare_table: { id: [namespace, "a$b"] } },
      { create_table_version: entry({ id, location: location ?? "" }, 1) },
    ];
    expect((await catalog.call("batchCommitTables", { operations })).status).toBe(200);
  });

  test("does nothing when the last of its operations fails", async () => {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    const fresh = [table.id[0] ?? "", "fresh"];
    const { error } = await catalog.call("batchCommitTables", {
      operations: [
        { declare_table: { id: fresh } },
        { create_table_version: entry(table, 2) },
        { delete_table_versions: { id: table.id, ranges: [{ start_version: 0, end_version: -1 }] } },
        { deregister_table: { id: [table.id[0], "missing"] } },
      ],
    });
    expect(error).toMatchObject({ status: 404, code: 4 });
    expect(await versionsOf(table)).toEqual([1]);
    expect((await catalog.call("tableExists", { id: fresh })).status).toBe(404);
  });

  test("refuses more than 1 MiB of identifiers", async () => {
    const parent = Array.from({ length: 10 }, () => "n".repeat(200));
    const names = Array.from({ length: 600 }, (_, index) => [...parent, `${index}`]);
    const declarations = names.map((id) => ({ declare_table: { id } }));
    const versions = names.map((id) => ({ id, version: 1, manifest_path: "x" }));
    for (const { error } of [
      await catalog.call("batchCommitTables", { operations: declarations }),
      await catalog.call("batchCreateTableVersions", { entries: versions }),
    ])
      expect(error).toMatchObject({ status: 400, detail: expect.stringContaining("send several batches") });
  });

  test("refuses to deregister tables together that have more than 1 MiB of properties", async () => {
    const properties = { note: "x".repeat(200_000) };
    const { id } = await declareTable(catalog);
    const large = Array.from({ length: 6 }, () => [id[0] ?? "", uniqueName("large")]);
    const declarations = large.map((name) => ({ declare_table: { id: name, properties } }));
    expect((await catalog.call("batchCommitTables", { operations: declarations })).status).toBe(200);
    const operations = large.map((name) => ({ deregister_table: { id: name } }));
    const { error } = await catalog.call("batchCommitTables", { operations });
    expect(error).toMatchObject({ status: 400, detail: expect.stringContaining("deregister them in several batches") });
    expect((await catalog.call("batchCommitTables", { operations: operations.slice(1) })).status).toBe(200);
    expect((await catalog.call("tableExists", { id: large[0] ?? [] })).status).toBe(200);
  });

  test.each<[string, unknown]>([
    ["no operations", []],
    ["an operation of no kind", [{}]],
    ["an operation of two kinds", [{ declare_table: { id: ["a"] }, deregister_table: { id: ["a"] } }]],
    ["an operation without a table", [{ declare_table: {} }]],
    ["a table with a control character", [{ declare_table: { id: ["a\u001fb"] } }]],
  ])("refuses %s", async (_, operations) => {
    expect((await catalog.call("batchCommitTables", { operations })).error).toMatchObject({ status: 400, code: 13 });
  });
});
