import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commit, declareTable, pathOf, stageManifest, startTestCatalog, type TestCatalog } from "../support/catalog.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
let catalog: TestCatalog;
beforeAll(async () => {
  folder = temporaryFolder("tiltyard-links-");
  mkdirSync(join(folder, "disk"));
  symlinkSync(join(folder, "disk"), join(folder, "warehouse"));
  catalog = await startTestCatalog({ TILTYARD_WAREHOUSE: `file://${folder}/warehouse` });
});
afterAll(() => catalog.stop());

/** Creates a folder with a file outside the warehouse. */
function elsewhere(): { readonly path: string; readonly file: string } {
  const path = temporaryFolder("elsewhere-");
  const file = join(path, "precious");
  writeFileSync(file, "precious");
  return { path, file };
}

test("a warehouse may be a symbolic link", async () => {
  const table = await declareTable(catalog);
  expect((await commit(catalog, table, 1)).status).toBe(200);
  await catalog.call("dropTable", { id: table.id });
  await expect.poll(() => existsSync(`/${pathOf(table)}`)).toBe(false);
});

test("a table whose manifests are in a folder that is a link is not committed to", async () => {
  const table = await declareTable(catalog);
  const { path } = elsewhere();
  const versions = `/${pathOf(table)}/_versions`;
  mkdirSync(dirname(versions), { recursive: true });
  symlinkSync(path, versions);
  const { error } = await commit(catalog, table, 1);
  expect(error).toMatchObject({ status: 409, detail: expect.stringContaining("leads through a symbolic link") });
  expect((await catalog.call("listTableVersions", { id: table.id })).body.versions).toEqual([]);
});

test("a staged manifest that is a link is not committed", async () => {
  const table = await declareTable(catalog);
  const manifest_path = stageManifest(table, 1);
  rmSync(`/${manifest_path}`);
  symlinkSync(elsewhere().file, `/${manifest_path}`);
  const { error } = await catalog.call("createTableVersion", { id: table.id, version: 1, manifest_path });
  expect(error).toMatchObject({ status: 409, detail: expect.stringContaining("leads through a symbolic link") });
});

test.each(["before", "after"])(
  "a table that is a link gets no tag outside of the warehouse, %s the first",
  async (when) => {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    const { path } = elsewhere();
    const tableFolder = `/${pathOf(table)}`;
    renameSync(tableFolder, join(path, "moved"));
    if (when === "after") mkdirSync(join(path, "moved/_refs/tags"), { recursive: true });
    symlinkSync(join(path, "moved"), tableFolder);
    const { error } = await catalog.call("createTableTag", { id: table.id, tag: "first", version: 1 });
    expect(error).toMatchObject({ status: 409, detail: expect.stringContaining("leads through a symbolic link") });
    expect(existsSync(join(path, "moved/_refs/tags/first.json"))).toBe(false);
  },
);

test("a dropped table leaves the target of a link on the path to its folder", async () => {
  const table = await declareTable(catalog);
  await commit(catalog, table, 1);
  const namespaceFolder = dirname(`/${pathOf(table)}`);
  const { path, file } = elsewhere();
  renameSync(namespaceFolder, join(path, "moved"));
  symlinkSync(join(path, "moved"), namespaceFolder);
  expect((await catalog.call("dropTable", { id: table.id })).status).toBe(200);
  const metrics = async () => (await catalog.fetch("/metrics")).text();
  await expect.poll(metrics).toContain('tiltyard_tasks_failing{kind="purge"} 1');
  expect(existsSync(join(path, "moved", pathOf(table).split("/").at(-1) ?? "", "_versions"))).toBe(true);
  expect(existsSync(file)).toBe(true);
});

test("a dropped table deletes its links and leaves their targets", async () => {
  const table = await declareTable(catalog);
  await commit(catalog, table, 1);
  const { path, file } = elsewhere();
  symlinkSync(path, `/${pathOf(table)}/link`);
  await catalog.call("dropTable", { id: table.id });
  await expect.poll(() => existsSync(`/${pathOf(table)}`)).toBe(false);
  expect(existsSync(file)).toBe(true);
});

test("a warehouse may be moved, with the link that leads to it", async () => {
  const table = await declareTable(catalog);
  expect((await commit(catalog, table, 1)).status).toBe(200);
  renameSync(join(folder, "disk"), join(folder, "larger-disk"));
  symlinkSync(join(folder, "larger-disk"), join(folder, "new-link"));
  renameSync(join(folder, "new-link"), join(folder, "warehouse"));
  expect((await commit(catalog, table, 2)).status).toBe(200);
});
