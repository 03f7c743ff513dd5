import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { contracts } from "@tiltyard/protocol";
import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { originOf } from "../../service/domain/transaction.ts";
import { prepareJob } from "../../service/jobs/job.ts";
import { openStore } from "../../service/store/open.ts";
import { commit, declareTable, finalName, pathOf, type TestTable, uniqueName, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();

/** Writes files like a Lance table that no catalog manages. */
function writeUnmanagedTable(name: string, manifests: readonly string[]): string {
  const folder = `${catalog.dataDir}/warehouse/${name}`;
  for (const manifest of manifests) {
    const file = `${folder}/${manifest}`;
    mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true });
    writeFileSync(file, "a manifest");
  }
  return pathToFileURL(folder).href;
}

async function namespace(): Promise<string> {
  const name = uniqueName("ns");
  await catalog.call("createNamespace", { id: [name] });
  return name;
}

describe("DeclareTable", () => {
  test("answers a location in the warehouse and touches no storage", async () => {
    const id = [await namespace(), "films"];
    const { body } = await catalog.call("declareTable", { id, properties: { owner: "ada" } });
    expect(body).toMatchObject({ managed_versioning: true, properties: { owner: "ada" } });
    expect(body.location.startsWith(pathToFileURL(`${catalog.dataDir}/warehouse/`).href)).toBe(true);
    expect(existsSync(`/${pathOf({ id, location: body.location })}`)).toBe(false);
  });

  test("assigns each table its own location, even under a reused name", async () => {
    const id = [await namespace(), "films"];
    const first = (await catalog.call("declareTable", { id })).body.location;
    await catalog.call("deregisterTable", { id });
    expect((await catalog.call("declareTable", { id })).body.location).not.toBe(first);
  });

  test("creates a table in the root namespace", async () => {
    expect((await catalog.call("declareTable", { id: [uniqueName("root_table")] })).status).toBe(200);
  });

  test("accepts names that no file system supports", async () => {
    const id = [await namespace(), `../../etc/pass wd \u{1f600} %2e?#"`];
    const { location } = (await catalog.call("declareTable", { id }, { delimiter: "||" })).body;
    expect(location.startsWith(pathToFileURL(`${catalog.dataDir}/warehouse/`).href)).toBe(true);
    expect((await catalog.call("describeTable", { id }, { delimiter: "||" })).body.location).toBe(location);
  });

  test("is refused when the table exists, or its namespace does not", async () => {
    const { id } = await declareTable(catalog);
    expect((await catalog.call("declareTable", { id })).error).toMatchObject({ status: 409, code: 5 });
    expect((await catalog.call("declareTable", { id: ["nowhere", "t"] })).error).toMatchObject({
      status: 404,
      code: 1,
    });
  });

  test("accepts a location inside the warehouse", async () => {
    const ns = await namespace();
    const asked = pathToFileURL(`${catalog.dataDir}/warehouse/chosen/${ns}`).href;
    expect((await catalog.call("declareTable", { id: [ns, "a"], location: asked })).body.location).toBe(asked);
    const relative = await catalog.call("declareTable", { id: [ns, "b"], location: `chosen/${ns}-relative` });
    expect(relative.body.location).toBe(`${asked}-relative`);
  });

  test.each([
    "file:///etc",
    "/etc/passwd",
    "s3://bucket/x",
    "../outside",
    "chosen/../../outside",
    "file:///%2e%2e/etc",
    "ftp://host/x",
    "C:\\tables",
    "a//b",
    "nul\u0000l",
  ])("refuses the location %j", async (location) => {
    const { error } = await catalog.call("declareTable", { id: [await namespace(), "t"], location });
    expect(error).toMatchObject({ status: 400, code: 13 });
    expect(error.detail).toMatch(/^location: /);
  });

  test("refuses the warehouse itself, and a location that overlaps with another table's", async () => {
    const ns = await namespace();
    const root = pathToFileURL(`${catalog.dataDir}/warehouse`).href;
    expect((await catalog.call("declareTable", { id: [ns, "t"], location: root })).status).toBe(400);
    await catalog.call("declareTable", { id: [ns, "taken"], location: `${ns}/taken` });
    for (const location of [`${ns}/taken`, `${ns}/taken/inside`, ns]) {
      const { error } = await catalog.call("declareTable", { id: [ns, "t"], location });
      expect(error).toMatchObject({ status: 409, code: 5 });
    }
    expect((await catalog.call("declareTable", { id: [ns, "t"], location: `${ns}/taken2` })).status).toBe(200);
  });
});

describe("RegisterTable", () => {
  test("registers a table with the versions of all its branches", async () => {
    const ns = await namespace();
    const location = writeUnmanagedTable(`${ns}-old`, [
      `_versions/${finalName(1)}`,
      `_versions/${finalName(2)}`,
      `_versions/latest_version_hint.json`,
      `tree/exp/a/_versions/${finalName(2)}`,
    ]);
    const id = [ns, "old"];
    const { body } = await catalog.call("registerTable", { id, location, properties: { from: "before" } });
    expect(body).toMatchObject({ location, properties: { from: "before" } });
    const main = (await catalog.call("listTableVersions", { id })).body.versions;
    expect(main.map((each) => each.version)).toEqual([1, 2]);
    expect(main[1]?.manifest_path).toBe(`${pathOf({ id, location })}/_versions/${finalName(2)}`);
    const branch = (await catalog.call("listTableVersions", { id, branch: "exp/a" })).body.versions;
    expect(branch.map((each) => each.version)).toEqual([2]);
    expect((await commit(catalog, { id, location }, 3)).status).toBe(200);
  });

  test("reads manifests of the naming scheme V1 too", async () => {
    const ns = await namespace();
    const location = writeUnmanagedTable(`${ns}-v1`, ["_versions/9.manifest", "_versions/10.manifest"]);
    await catalog.call("registerTable", { id: [ns, "v1"], location });
    const { versions } = (await catalog.call("listTableVersions", { id: [ns, "v1"] })).body;
    expect(versions.map((each) => each.version)).toEqual([9, 10]);
  });

  test("is refused without a Lance table at the location", async () => {
    const { error } = await catalog.call("registerTable", { id: [await namespace(), "t"], location: "nothing-here" });
    expect(error).toMatchObject({ status: 400, code: 13 });
  });

  test("replaces a registration with the mode Overwrite only, and keeps the old data", async () => {
    const ns = await namespace();
    const id = [ns, "t"];
    const [one, two] = ["one", "two"].map((name) =>
      writeUnmanagedTable(`${ns}-${name}`, [`_versions/${finalName(1)}`]),
    );
    await catalog.call("registerTable", { id, location: one });
    expect((await catalog.call("registerTable", { id, location: two })).error).toMatchObject({ status: 409, code: 5 });
    await catalog.call("registerTable", { id, location: two, mode: "overwrite" });
    expect((await catalog.call("describeTable", { id })).body.location).toBe(two);
    expect(existsSync(`/${pathOf({ id, location: one ?? "" })}/_versions/${finalName(1)}`)).toBe(true);
  });
});

describe("DescribeTable", () => {
  test("returns the details selected by flags in the query and in the body", async () => {
    const { id, location } = await declareTable(catalog);
    const plain = (await catalog.call("describeTable", { id })).body;
    expect(plain).toEqual({ table: id[1], namespace: [id[0]], location, properties: {}, managed_versioning: true });
    const flagged = await catalog.fetch(
      `/v1/table/${id.join("%24")}/describe?delimiter=%24&with_table_uri=false&check_declared=true`,
      { method: "POST", body: JSON.stringify({ id, with_table_uri: true }) },
    );
    expect(await flagged.json()).toMatchObject({ table_uri: location, is_only_declared: true });
  });

  test("distinguishes a declared table from a written one", async () => {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    expect((await catalog.call("describeTable", { id: table.id, check_declared: true })).body.is_only_declared).toBe(
      false,
    );
  });

  test("is 404 for a table, a version or a branch that does not exist", async () => {
    const { id } = await declareTable(catalog);
    expect((await catalog.call("describeTable", { id: [...id, "deeper"] })).error).toMatchObject({
      status: 404,
      code: 4,
    });
    expect((await catalog.call("describeTable", { id, version: 7 })).error).toMatchObject({ status: 404, code: 11 });
    expect((await catalog.call("describeTable", { id, branch: "exp" })).error).toMatchObject({ status: 404, code: 22 });
    expect((await catalog.call("tableExists", { id, version: 7 })).status).toBe(404);
    expect((await catalog.call("tableExists", { id })).status).toBe(200);
  });
});

async function everyTable(): Promise<readonly string[]> {
  return (await catalog.call("listAllTables", { include_declared: true })).body.tables;
}

/** Waits for the deletion of a table's objects, which follows the response. */
async function untilGone(table: TestTable): Promise<void> {
  await expect.poll(() => existsSync(`/${pathOf(table)}`)).toBe(false);
}

describe("a removed table", () => {
  async function written(): Promise<TestTable> {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    return table;
  }

  test("keeps its data when it is deregistered", async () => {
    const table = await written();
    const { body } = await catalog.call("deregisterTable", { id: table.id });
    expect(body).toMatchObject({ id: table.id, location: table.location });
    expect((await catalog.call("tableExists", { id: table.id })).status).toBe(404);
    expect(existsSync(`/${pathOf(table)}/_versions/${finalName(1)}`)).toBe(true);
    expect((await catalog.call("registerTable", { id: table.id, location: table.location })).status).toBe(200);
  });

  test("loses its data when it is dropped, and its name and location are free again", async () => {
    const table = await written();
    const beside = await written();
    const others = await everyTable();
    expect((await catalog.call("dropTable", { id: table.id })).body).toMatchObject({ location: table.location });
    expect(await everyTable()).toEqual(others.filter((name) => name !== table.id.join("$")));
    expect((await catalog.call("dropTable", { id: table.id })).error).toMatchObject({ status: 404, code: 4 });
    await untilGone(table);
    expect(existsSync(`/${pathOf(beside)}`)).toBe(true);
    const again = { id: table.id, location: table.location };
    await expect.poll(async () => (await catalog.call("declareTable", again)).status).toBe(200);
  });

  test.each([".tiltyard-deleted", "~"])(
    "is dropped without another at its location with %j behind it",
    async (suffix) => {
      const ns = await namespace();
      const [dropped, other] = await Promise.all(
        ["x", `x${suffix}`].map(async (name) => {
          const id = [ns, name];
          const { location } = (await catalog.call("declareTable", { id, location: `${ns}/${name}` })).body;
          await commit(catalog, { id, location }, 1);
          return { id, location };
        }),
      );
      if (dropped === undefined || other === undefined) throw new Error("a table is missing");
      await catalog.call("dropTable", { id: dropped.id });
      await untilGone(dropped);
      // The location is free when its folder is deleted under every name.
      await expect.poll(async () => (await catalog.call("declareTable", dropped)).status).toBe(200);
      expect(existsSync(`/${pathOf(other)}/_versions/${finalName(1)}`)).toBe(true);
    },
  );

  test.each([239, 255, 300])("is purged from a folder whose name has %d characters", async (length) => {
    const id = [await namespace(), "x"];
    const { location } = (await catalog.call("declareTable", { id, location: "l".repeat(length) })).body;
    const table = { id, location };
    // No file system has longer names, so nothing was written into the folder of 300 characters.
    if (length <= 255) await commit(catalog, table, 1);
    await catalog.call("dropTable", { id });
    await untilGone(table);
    await expect.poll(async () => (await catalog.call("declareTable", table)).status).toBe(200);
  });

  test("loses its data with the namespace that is dropped by Cascade", async () => {
    const table = await written();
    await catalog.call("dropNamespace", { id: table.id.slice(0, 1), behavior: "Cascade" });
    await untilGone(table);
  });
});

describe("RenameTable", () => {
  test("moves a table with its versions and leaves its data where it is", async () => {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    const target = await namespace();
    const request = { id: table.id, new_table_name: "renamed", new_namespace_id: [target] };
    await catalog.call("renameTable", request);
    const id = [target, "renamed"];
    expect((await catalog.call("describeTable", { id })).body.location).toBe(table.location);
    expect((await catalog.call("listTableVersions", { id })).body.versions).toHaveLength(1);
    expect((await catalog.call("tableExists", { id: table.id })).status).toBe(404);
  });

  test("stays in its namespace when no other is named", async () => {
    const table = await declareTable(catalog);
    await catalog.call("renameTable", { id: table.id, new_table_name: "renamed" });
    expect((await catalog.call("tableExists", { id: [table.id[0], "renamed"] })).status).toBe(200);
  });

  test("stays in its namespace when the list of the other's names is empty, as Java's client sends it", async () => {
    const table = await declareTable(catalog);
    const body = JSON.stringify({ new_table_name: "renamed", new_namespace_id: [] });
    const renamed = await catalog.fetch(`/v1/table/${table.id.join("%24")}/rename`, { method: "POST", body });
    expect(renamed.status).toBe(200);
    expect((await catalog.call("tableExists", { id: [table.id[0], "renamed"] })).status).toBe(200);
    expect((await catalog.call("tableExists", { id: ["renamed"] })).status).toBe(404);
  });

  test("is refused when a concurrent request opens a job on the table", async () => {
    const { id } = await declareTable(catalog);
    await using other = await openStore(catalog.database);
    const [isOpened, isCommitted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const caller = originOf({ name: "ann", grants: [] });
    const { operationId: operation } = contracts.alterTableBackfillColumns;
    const job = prepareJob({ operation, caller, table: id, parameters: {} });
    const opening = other.write(
      async (session) => {
        await job.open(session, { perPrincipal: 1, perNamespace: 1 });
        isOpened.resolve();
        await isCommitted.promise;
      },
      { locking: "jobs" },
    );
    await isOpened.promise;
    const renaming = catalog.call("renameTable", { id, new_table_name: "renamed" });
    // SQLite runs one transaction at a time.
    const isWaiting = async () =>
      catalog.database.kind === "sqlite" ||
      (await sql`select 1 from pg_locks where not granted`.execute(other.read.db)).rows.length > 0;
    await Promise.race([renaming, expect.poll(isWaiting).toBe(true)]);
    isCommitted.resolve();
    await opening;
    expect((await renaming).error).toMatchObject({ status: 409, detail: expect.stringContaining("has the open job") });
  });

  test("is refused when the name exists, the target is unknown or the name is invalid", async () => {
    const { id } = await declareTable(catalog);
    const other = await declareTable(catalog, id[0]);
    expect((await catalog.call("renameTable", { id, new_table_name: other.id[1] })).error).toMatchObject({ code: 5 });
    const lost = { id, new_table_name: "t", new_namespace_id: ["nowhere"] };
    expect((await catalog.call("renameTable", lost)).error).toMatchObject({ status: 404, code: 1 });
    expect((await catalog.call("renameTable", { id, new_table_name: "" })).error).toMatchObject({ code: 13 });
    expect((await catalog.call("renameTable", { id, new_table_name: "a\nb" })).error).toMatchObject({ code: 13 });
    expect((await catalog.call("tableExists", { id })).status).toBe(200);
  });
});
