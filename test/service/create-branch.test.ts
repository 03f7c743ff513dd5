import { existsSync, readFileSync, rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { finalName, pathOf, stageManifest, type TestTable, useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms } from "../support/rows.ts";

const catalog = useCatalog();

async function countRows(id: string[], branch?: string): Promise<number> {
  return (await catalog.call("countTableRows", { id, ...(branch !== undefined && { branch }) })).body;
}

async function insert(id: string[], branch?: string): Promise<void> {
  const body = arrowStream([{ id: 9, title: "Nostalghia" }]);
  const answer = await catalog.call("insertIntoTable", { id, ...(branch !== undefined && { branch }) }, { body });
  expect(answer.status).toBe(200);
}

async function branchesOf(id: string[]) {
  return (await catalog.call("listTableBranches", { id })).body.branches;
}

async function folderOf(id: string[]): Promise<string> {
  const { location } = (await catalog.call("describeTable", { id })).body;
  return `/${pathOf({ id, location } satisfies TestTable)}`;
}

describe("a new branch", () => {
  test("begins with the latest version of main, and has rows of its own from then on", async () => {
    const id = await createFilms(catalog);
    await insert(id);
    const { body } = await catalog.call("createTableBranch", { id, name: "team/side" });
    expect(await branchesOf(id)).toEqual({
      "team/side": {
        parentVersion: 2,
        createAt: expect.any(Number),
        manifestSize: expect.any(Number),
        metadata: {},
      },
    });
    await insert(id, "team/side");
    expect([await countRows(id), await countRows(id, "team/side")]).toEqual([4, 5]);
    const { versions } = (await catalog.call("listTableVersions", { id, branch: "team/side" })).body;
    expect(versions.map((each) => each.version)).toEqual([2, 3]);
    const transaction = await catalog.call("describeTransaction", { id: body.transaction_id?.split("$") });
    expect(transaction.body.context).toMatchObject({ operation: "CreateTableBranch", principal: "bootstrap" });
  });

  test("begins with a version of any branch", async () => {
    const id = await createFilms(catalog);
    await insert(id);
    await catalog.call("createTableBranch", { id, name: "first", from_version: 1 });
    await insert(id, "first");
    await insert(id, "first");
    await catalog.call("createTableBranch", { id, name: "second", from_branch: "first", from_version: 2 });
    await catalog.call("createTableBranch", { id, name: "third", from_branch: "first" });
    expect(await Promise.all(["first", "second", "third"].map((each) => countRows(id, each)))).toEqual([5, 4, 5]);
    expect(await branchesOf(id)).toMatchObject({
      first: { parentVersion: 1 },
      second: { parentVersion: 2, parentBranch: "first" },
      third: { parentVersion: 3, parentBranch: "first" },
    });
    expect((await catalog.call("deleteTableBranch", { id, name: "first" })).error.detail).toContain("branch second");
  });

  test("finds rows by the indices of all branches that it descends from", async () => {
    const id = await createFilms(catalog);
    const index = (column: string, branch?: string) =>
      catalog.call("createTableScalarIndex", { id, column, index_type: "BTREE", ...(branch && { branch }) });
    expect((await index("id")).status).toBe(200);
    await catalog.call("createTableBranch", { id, name: "first" });
    await insert(id, "first");
    expect((await index("title", "first")).status).toBe(200);
    await catalog.call("createTableBranch", { id, name: "second", from_branch: "first" });
    await catalog.call("createTableBranch", { id, name: "third", from_branch: "second" });
    for (const branch of ["second", "third"]) {
      const count = (predicate: string) => catalog.call("countTableRows", { id, branch, predicate });
      expect([(await count("id = 9")).body, (await count("title = 'Nostalghia'")).body]).toEqual([1, 1]);
      const deleted = await catalog.call("deleteFromTable", { id, branch, predicate: "id = 9" });
      expect([deleted.status, await countRows(id, branch)]).toEqual([200, 3]);
    }
  });

  test("is created once by concurrent requests; the others get 409", async () => {
    const id = await createFilms(catalog);
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => catalog.call("createTableBranch", { id, name: "contested" })),
    );
    const lost = answers.filter((answer) => answer.status !== 200);
    expect(lost).toHaveLength(3);
    for (const answer of lost) expect(answer.error).toMatchObject({ status: 409, code: 23 });
    expect(await countRows(id, "contested")).toBe(3);
  });

  test("can have the name of one that was deleted", async () => {
    const id = await createFilms(catalog);
    for (let time = 0; time < 2; time++) {
      await catalog.call("createTableBranch", { id, name: "again" });
      await insert(id, "again");
      expect(await countRows(id, "again")).toBe(4);
      expect((await catalog.call("deleteTableBranch", { id, name: "again" })).status).toBe(200);
      expect(existsSync(`${await folderOf(id)}/tree/again`)).toBe(false);
    }
  });

  test("is created by the retry of an interrupted creation", async () => {
    const id = await createFilms(catalog);
    await catalog.call("createTableBranch", { id, name: "half" });
    await insert(id);
    // Lance writes this file last.
    rmSync(`${await folderOf(id)}/_refs/branches/half.json`);
    expect((await catalog.call("createTableBranch", { id, name: "half" })).status).toBe(200);
    expect(await countRows(id, "half")).toBe(4);
  });

  test("can have the name of one that a Lance client deleted without the catalog", async () => {
    const id = await createFilms(catalog);
    await catalog.call("createTableBranch", { id, name: "gone" });
    await insert(id, "gone");
    const folder = await folderOf(id);
    rmSync(`${folder}/_refs/branches/gone.json`);
    rmSync(`${folder}/tree/gone`, { recursive: true });
    expect((await catalog.call("createTableBranch", { id, name: "gone" })).status).toBe(200);
    expect(await countRows(id, "gone")).toBe(3);
  });

  test("is no longer committed to by writers of the one that was deleted", async () => {
    const id = await createFilms(catalog);
    const { location } = (await catalog.call("describeTable", { id })).body;
    await catalog.call("createTableBranch", { id, name: "old" });
    await insert(id, "old");
    const content = readFileSync(`${await folderOf(id)}/tree/old/_versions/${finalName(2)}`);
    await catalog.call("deleteTableBranch", { id, name: "old" });
    const manifest_path = stageManifest({ id, location }, 3, { branch: "old", content });
    const late = await catalog.call("createTableVersion", { id, branch: "old", version: 3, manifest_path });
    expect(late.error).toMatchObject({ status: 404, code: 22 });
    expect((await catalog.call("createTableBranch", { id, name: "old" })).status).toBe(200);
    expect(await countRows(id, "old")).toBe(3);
  });

  test("does not replace one with rows whose file is missing", async () => {
    const id = await createFilms(catalog);
    await catalog.call("createTableBranch", { id, name: "kept" });
    await insert(id, "kept");
    rmSync(`${await folderOf(id)}/_refs/branches/kept.json`);
    const again = () => catalog.call("createTableBranch", { id, name: "kept" });
    expect((await again()).error).toMatchObject({ status: 409, code: 23 });
    expect(await countRows(id, "kept")).toBe(4);
    await catalog.call("deleteTableBranch", { id, name: "kept" });
    expect((await again()).status).toBe(200);
  });

  test.each([
    ["a version that does not exist", { name: "b", from_version: 7 }, { status: 404, code: 11 }],
    ["a branch that does not exist", { name: "b", from_branch: "nowhere" }, { status: 404, code: 22 }],
    ["main", { name: "main" }, { status: 400, code: 13 }],
    ["a name that is none", { name: "../b" }, { status: 400, code: 13 }],
    ["no name", {}, { status: 400, code: 13 }],
  ])("is not created from %s", async (_, asked, expected) => {
    const id = await createFilms(catalog);
    expect((await catalog.call("createTableBranch", { id, ...asked })).error).toMatchObject(expected);
    expect(await branchesOf(id)).toEqual({});
  });

  test.each([
    ["side", "side/data"],
    ["side", "side/_versions"],
    ["side", "side/_versions/deeper"],
    ["side/data", "side"],
    ["side/_versions", "side"],
  ])("is not created in a folder that Lance uses, with rows on %s: %s", async (present, name) => {
    const id = await createFilms(catalog);
    await catalog.call("createTableBranch", { id, name: present });
    await insert(id, present);
    expect((await catalog.call("createTableBranch", { id, name })).error).toMatchObject({
      status: 409,
      code: 19,
      detail: `name: the folders of the branches "${name}" and "${present}" would overlap: use another name`,
    });
    expect(Object.keys(await branchesOf(id))).toEqual([present]);
  });

  test("may have the name of a folder of Lance where no other branch has files", async () => {
    const id = await createFilms(catalog);
    for (const name of ["data", "side", "team/data", "side/database"]) {
      expect((await catalog.call("createTableBranch", { id, name })).status).toBe(200);
      await insert(id, name);
    }
    await catalog.call("deleteTableBranch", { id, name: "team/data" });
    expect(await Promise.all(["data", "side", "side/database"].map((each) => countRows(id, each)))).toEqual([4, 4, 4]);
  });
});
