import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { commit, declareTable, startTestCatalog } from "../support/catalog.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { runSql } from "../support/postgres-server.ts";
import { runCatalogCommand } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let target: TestDatabase;
let file: string;
beforeEach(async () => {
  target = await createTestDatabase();
  file = join(temporaryFolder("tiltyard-move-"), "catalog.sqlite");
});
afterEach(() => target.drop());

const sqlite = () => ({ TILTYARD_DATABASE_URL: `sqlite:${file}` });
const move = (...args: string[]) => runCatalogCommand(["move", file, ...args], { TILTYARD_DATABASE_URL: target.url });

describe("move", () => {
  test("moves a whole catalog to PostgreSQL, which continues from the state of SQLite", async () => {
    const before = await startTestCatalog(sqlite());
    const [first, second] = [await declareTable(before, "n"), await declareTable(before, "n")];
    for (let version = 1; version <= 3; version++) await commit(before, first, version);
    await commit(before, first, 3, { branch: "dev" });
    await before.call("batchDeleteTableVersions", { id: first.id, ranges: [{ start_version: 1, end_version: 2 }] });
    const dropped = await declareTable(before, "n");
    await before.call("dropTable", { id: dropped.id });
    const key = await before.keyFor("ada", { n: "writer" });
    const { transaction_id = "" } = (
      await before.call("createNamespace", { id: ["other"], properties: { a: "\u0000é" } })
    ).body;
    const list = async (catalog: typeof before) => (await catalog.call("listTableVersions", { id: first.id })).body;
    const versions = await list(before);

    const running = await move();
    expect([running.code, running.stderr]).toEqual([1, expect.stringContaining("stop the service first")]);
    await before.stop();

    const moved = await move("--json");
    expect([moved.code, moved.stderr]).toEqual([0, ""]);
    const { rows, to } = JSON.parse(moved.stdout);
    expect(rows).toMatchObject({ namespaces: 4, tables: 2, branches: 2, table_versions: 3, api_keys: 3, grants: 3 });
    expect(to).not.toContain("postgres:se");

    const after = await startTestCatalog({ TILTYARD_DATABASE_URL: target.url });
    expect(await list(after)).toEqual(versions);
    expect((await after.call("describeNamespace", { id: ["other"] })).body.properties).toEqual({ a: "\u0000é" });
    expect((await after.call("describeTransaction", { id: transaction_id.split("$") })).body.status).toBe("Succeeded");
    expect((await after.call("namespaceExists", { id: ["n"] }, { key })).status).toBe(200);
    expect((await commit(after, first, 4)).status).toBe(200);
    expect((await commit(after, second, 1)).status).toBe(200);
    await declareTable(after, "n");
    const ids = await runSql(target.url, "select id from tables order by id");
    expect(ids.rows.map(({ id }) => id)).toEqual([1, 2, 4]);
    await after.stop();
  });

  test("refuses a target that is not empty, and leaves it as it is", async () => {
    const source = await startTestCatalog(sqlite());
    await declareTable(source, "n");
    await source.stop();
    const used = await startTestCatalog({ TILTYARD_DATABASE_URL: target.url });
    await used.call("createNamespace", { id: ["mine"] });
    const { code, stderr } = await move();
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/is not empty. It contains namespaces, audit_records, api_keys, grants/),
    ]);
    expect(stderr).not.toContain("    at ");
    expect((await used.call("listNamespaces", { id: [] })).body.namespaces).toEqual(["mine"]);
    await used.stop();
  });

  test.each([
    ["a file that is not there", () => ({ TILTYARD_DATABASE_URL: target.url }), 1, "no file exists at"],
    ["a target that is SQLite", () => ({}), 2, "must name the PostgreSQL database to move to"],
  ])("refuses %s", async (_, settings, exitCode, message) => {
    const { code, stderr } = await runCatalogCommand(["move", file], settings());
    expect([code, stderr]).toEqual([exitCode, expect.stringContaining(message)]);
  });
});

test("an empty database is refused while the warehouse has tables of a catalog: no program starts an empty catalog", async () => {
  const folder = temporaryFolder("tiltyard-refused-");
  const table = join(folder, "warehouse/ns/t-0123456789ab.lance/_versions");
  mkdirSync(table, { recursive: true });
  writeFileSync(join(table, "1.manifest"), "");
  const settings = { TILTYARD_DATABASE_URL: target.url, TILTYARD_DATA_DIR: folder, TILTYARD_PORT: "0" };
  // The first attempt creates the schema.
  for (let time = 0; time < 2; time += 1) {
    const { code, stderr } = await runCatalogCommand(["serve"], settings);
    expect([code, stderr]).toEqual([1, expect.stringContaining("Repeat an interrupted tiltyard-catalog move")]);
    expect(stderr).toContain("ns/t-0123456789ab.lance");
    expect(stderr).not.toContain("    at ");
  }
});

test.each(["backup", "restore"])("%s says what to use instead on PostgreSQL", async (command) => {
  const { code, stderr } = await runCatalogCommand([command, "file"], { TILTYARD_DATABASE_URL: target.url });
  expect([code, stderr]).toEqual([1, expect.stringMatching(/database is PostgreSQL: use pg_(dump|restore)/)]);
});
