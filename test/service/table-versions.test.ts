import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import {
  commit,
  declareTable,
  finalName,
  pathOf,
  readText,
  stageManifest,
  type TestTable,
  useCatalog,
} from "../support/catalog.ts";

const catalog = useCatalog();

async function versionsOf(table: TestTable, branch?: string): Promise<number[]> {
  const request = { id: table.id, ...(branch !== undefined && { branch }) };
  return (await catalog.call("listTableVersions", request)).body.versions.map((each) => each.version);
}

async function tableWithVersions(count: number): Promise<TestTable> {
  const table = await declareTable(catalog);
  for (let version = 1; version <= count; version++) await commit(catalog, table, version);
  return table;
}

describe("CreateTableVersion", () => {
  test("moves the staged manifest to its final name and returns it", async () => {
    const table = await declareTable(catalog);
    const staged = stageManifest(table, 1, { content: "the manifest" });
    const { body } = await catalog.call("createTableVersion", {
      id: table.id,
      version: 1,
      manifest_path: staged,
      manifest_size: 12,
      e_tag: '"abc"',
      naming_scheme: "V2",
      metadata: { by: "test" },
    });
    const final = `${pathOf(table)}/_versions/${finalName(1)}`;
    expect(body.version).toMatchObject({
      version: 1,
      manifest_path: final,
      manifest_size: 12,
      e_tag: '"abc"',
      metadata: { by: "test" },
    });
    expect(body.version.timestamp_millis).toBeGreaterThan(Date.now() - 60_000);
    expect(readText(`/${final}`)).toBe("the manifest");
    await expect.poll(() => existsSync(`/${staged}`)).toBe(false);
    expect((await catalog.call("describeTableVersion", { id: table.id, version: 1 })).body.version).toEqual(
      body.version,
    );
  });

  test("names manifests as the scheme V1 does when asked to, or when the path does", async () => {
    const table = await declareTable(catalog);
    const first = await commit(catalog, table, 1, { scheme: "V1" });
    expect(first.body.version.manifest_path).toBe(`${pathOf(table)}/_versions/1.manifest`);
    const manifest_path = stageManifest(table, 2, { scheme: "V1" });
    const second = await catalog.call("createTableVersion", { id: table.id, version: 2, manifest_path });
    expect(second.body.version.manifest_path).toBe(`${pathOf(table)}/_versions/2.manifest`);
  });

  test("accepts a manifest that already has its final name", async () => {
    const table = await declareTable(catalog);
    const staged = stageManifest(table, 1, { suffix: "x" });
    const final = `${pathOf(table)}/_versions/${finalName(1)}`;
    mkdirSync(`/${pathOf(table)}/_versions`, { recursive: true });
    renameSync(`/${staged}`, `/${final}`);
    const { body } = await catalog.call("createTableVersion", { id: table.id, version: 1, manifest_path: final });
    expect(body.version.manifest_path).toBe(final);
    expect(existsSync(`/${final}`)).toBe(true);
  });

  test("brings back no deleted version by its final name, which another manifest can have", async () => {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    const ranges = [{ start_version: 0, end_version: -1 }];
    await catalog.call("batchDeleteTableVersions", { id: table.id, ranges });
    const manifest_path = `${pathOf(table)}/_versions/${finalName(1)}`;
    const create = () => catalog.call("createTableVersion", { id: table.id, version: 1, manifest_path });
    expect((await create()).error).toMatchObject({ code: 14, detail: expect.stringContaining("deleted since") });
    renameSync(`/${stageManifest(table, 1, { content: "another" })}`, `/${manifest_path}`);
    expect((await create()).status).toBe(200);
  });

  test.each(["a leading slash", "a URI"])("accepts a path with %s", async (form) => {
    const table = await declareTable(catalog);
    const staged = stageManifest(table, 1);
    const manifest_path = form === "a URI" ? `${table.location}/_versions/${staged.split("/").at(-1)}` : `/${staged}`;
    expect((await catalog.call("createTableVersion", { id: table.id, version: 1, manifest_path })).status).toBe(200);
  });

  test("accepts any first number, and after that only the next one", async () => {
    const table = await declareTable(catalog);
    expect((await commit(catalog, table, 7)).status).toBe(200);
    for (const version of [6, 9, 10])
      expect((await commit(catalog, table, version)).error).toMatchObject({ status: 409, code: 14 });
    expect((await commit(catalog, table, 9)).error.detail).toContain("requested version 9, expected 8");
    expect((await commit(catalog, table, 8)).status).toBe(200);
    expect(await versionsOf(table)).toEqual([7, 8]);
  });

  test("accepts the largest exact number of JSON, which is the latest version and can be deleted", async () => {
    const table = await declareTable(catalog);
    const version = Number.MAX_SAFE_INTEGER;
    for (const each of [version - 1, version]) expect((await commit(catalog, table, each)).status).toBe(200);
    expect((await catalog.call("describeTableVersion", { id: table.id })).body.version.version).toBe(version);
    const ranges = [{ start_version: version, end_version: -1 }];
    const { body } = await catalog.call("batchDeleteTableVersions", { id: table.id, ranges });
    expect(body.deleted_count).toBe(1);
    expect(await versionsOf(table)).toEqual([version - 1]);
  });

  test("follows the latest version whose record is left, with the next number", async () => {
    const table = await tableWithVersions(4);
    const ranges = [{ start_version: 3, end_version: -1 }];
    await catalog.call("batchDeleteTableVersions", { id: table.id, ranges });
    for (const version of [3, 4, 6]) expect((await commit(catalog, table, version)).error).toMatchObject({ code: 14 });
    const answers = await Promise.all([5, 5, 5].map((version) => commit(catalog, table, version)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
    expect((await commit(catalog, table, 6)).status).toBe(200);
    expect(await versionsOf(table)).toEqual([1, 2, 5, 6]);
  });

  test("does not recreate a deleted version", async () => {
    const table = await tableWithVersions(3);
    const ranges = [{ start_version: 1, end_version: 4 }];
    await catalog.call("batchDeleteTableVersions", { id: table.id, ranges });
    for (const version of [1, 3]) expect((await commit(catalog, table, version)).error).toMatchObject({ code: 14 });
    expect((await commit(catalog, table, 4)).status).toBe(200);
  });

  test("accepts one of many racing writers, and answers the others with 409, code 14", async () => {
    const table = await tableWithVersions(1);
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => commit(catalog, table, 2, { content: `writer ${index}` })),
    );
    const winners = answers.flatMap((answer, index) => (answer.status === 200 ? [index] : []));
    expect(winners).toHaveLength(1);
    for (const answer of answers.filter((each) => each.status !== 200))
      expect(answer.error).toMatchObject({ status: 409, code: 14 });
    expect(readText(`/${pathOf(table)}/_versions/${finalName(2)}`)).toBe(`writer ${winners[0]}`);
    expect(await versionsOf(table)).toEqual([1, 2]);
  });

  test("answers a repeated commit with the same response", async () => {
    const table = await declareTable(catalog);
    const request = { id: table.id, version: 1, manifest_path: stageManifest(table, 1), manifest_size: 9 };
    const first = await catalog.call("createTableVersion", request);
    const again = await catalog.call("createTableVersion", request);
    expect(again.body).toEqual(first.body);
    expect(await versionsOf(table)).toEqual([1]);
  });

  test("refuses another manifest for a version that exists, and leaves its file alone", async () => {
    const table = await tableWithVersions(1);
    const staged = stageManifest(table, 1, { content: "late" });
    const answer = await catalog.call("createTableVersion", { id: table.id, version: 1, manifest_path: staged });
    expect(answer.error).toMatchObject({ status: 409, code: 14 });
    expect(readText(`/${staged}`)).toBe("late");
    expect(readText(`/${pathOf(table)}/_versions/${finalName(1)}`)).toBe("version 1");
  });

  test("is refused when nothing was staged", async () => {
    const table = await declareTable(catalog);
    const manifest_path = `${pathOf(table)}/_versions/${finalName(1)}-nothing`;
    const answer = await catalog.call("createTableVersion", { id: table.id, version: 1, manifest_path });
    expect(answer.error).toMatchObject({ status: 400, code: 13 });
    expect(await versionsOf(table)).toEqual([]);
  });

  test("refuses manifest paths outside of the table's folder of manifests", async () => {
    const table = await declareTable(catalog);
    const other = await tableWithVersions(1);
    const own = pathOf(table);
    const paths = [
      `${pathOf(other)}/_versions/${finalName(1)}`,
      `${own}/_versions/../../${pathOf(other).split("/").at(-1)}/_versions/${finalName(1)}`,
      `${own}/_versions/./${finalName(1)}-a`,
      `${own}/_versions//${finalName(1)}-a`,
      `${own}/data/file.lance`,
      `${own}/_versions/deeper/${finalName(1)}-a`,
      `${own}/tree/exp/_versions/${finalName(1)}-a`,
      `${own}/_versions/latest_version_hint.json`,
      `${own}/_versions/${finalName(2)}`,
      `${own}/_versions/`,
      `${own}2/_versions/${finalName(1)}-a`,
      `${own}/_versions/${finalName(1)}-\u0000`,
      `${own}\\_versions\\${finalName(1)}-a`,
      "etc/passwd",
      "/etc/passwd.manifest-1",
      "s3://bucket/_versions/1.manifest-a",
      "file:///etc/1.manifest-a",
      "https://example.org/1.manifest-a",
      "x",
    ];
    // Some of these files exist: the path is rejected, not the absence of the file.
    for (const name of ["deeper/x", finalName(2), "latest_version_hint.json", `deeper/${finalName(1)}-a`]) {
      const file = `/${own}/_versions/${name}`;
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, "content");
    }
    for (const manifest_path of paths) {
      const answer = await catalog.call("createTableVersion", { id: table.id, version: 1, manifest_path });
      expect([manifest_path, answer.status, answer.error.code]).toEqual([manifest_path, 400, 13]);
      expect(answer.error.detail).not.toContain("no object exists");
    }
    const files = () => readdirSync(`/${pathOf(other)}/_versions`);
    await expect.poll(() => files()).toEqual([finalName(1)]);
  });

  test("keeps the versions of branches apart", async () => {
    const table = await tableWithVersions(3);
    const first = await commit(catalog, table, 3, { branch: "exp/one", content: "on the branch" });
    expect(first.body.version.manifest_path).toBe(`${pathOf(table)}/tree/exp/one/_versions/${finalName(3)}`);
    expect((await commit(catalog, table, 4, { branch: "exp/one" })).status).toBe(200);
    expect(await versionsOf(table)).toEqual([1, 2, 3]);
    expect(await versionsOf(table, "exp/one")).toEqual([3, 4]);
    expect(await versionsOf(table, "main")).toEqual([1, 2, 3]);
  });

  test("is 404 for a table that does not exist", async () => {
    const { id } = await declareTable(catalog);
    const request = { id: [id[0], "missing"], version: 1, manifest_path: "x" };
    expect((await catalog.call("createTableVersion", request)).error).toMatchObject({ status: 404, code: 4 });
  });
});

describe("ListTableVersions", () => {
  test("is empty for a new table, and 404 for a branch without a record so far", async () => {
    const table = await declareTable(catalog);
    expect(await versionsOf(table)).toEqual([]);
    const answer = await catalog.call("listTableVersions", { id: table.id, branch: "exp" });
    expect(answer.error).toMatchObject({ status: 404, code: 22 });
  });

  test("accepts the body null, as the Rust client sends it", async () => {
    const table = await tableWithVersions(2);
    const answer = await catalog.fetch(
      `/v1/table/${table.id.join("%24")}/version/list?delimiter=%24&limit=1&descending=true`,
      { method: "POST", body: "null" },
    );
    expect(await answer.json()).toMatchObject({ versions: [{ version: 2 }] });
  });

  test.each(["..", "a/../b", "/a", "a//b", "a b", "x.lock", "a\\b", ""])(
    "refuses the branch name %j",
    async (branch) => {
      const table = await declareTable(catalog);
      expect((await catalog.call("listTableVersions", { id: table.id, branch })).error).toMatchObject({
        status: 400,
        code: 13,
      });
    },
  );
});

describe("DescribeTableVersion", () => {
  test("answers the latest version when none is named", async () => {
    const table = await tableWithVersions(3);
    expect((await catalog.call("describeTableVersion", { id: table.id })).body.version.version).toBe(3);
  });

  test("is 404 for a version or a branch that does not exist", async () => {
    const table = await tableWithVersions(1);
    const { id } = table;
    expect((await catalog.call("describeTableVersion", { id, version: 2 })).error).toMatchObject({
      status: 404,
      code: 11,
    });
    expect((await catalog.call("describeTableVersion", { id, version: 1, branch: "exp" })).error).toMatchObject({
      code: 22,
    });
    const empty = await declareTable(catalog);
    expect((await catalog.call("describeTableVersion", { id: empty.id })).error).toMatchObject({ code: 11 });
  });
});

describe("BatchDeleteTableVersions", () => {
  async function remove(table: TestTable, ranges: readonly (readonly [number, number])[], branch?: string) {
    return catalog.call("batchDeleteTableVersions", {
      id: table.id,
      ranges: ranges.map(([start_version, end_version]) => ({ start_version, end_version })),
      ...(branch !== undefined && { branch }),
    });
  }

  test.each<[string, [number, number][], number[], number]>([
    ["deletes from the start up to and without the end", [[2, 4]], [1, 4, 5], 2],
    ["runs through the latest with the end -1", [[3, -1]], [1, 2], 3],
    ["deletes all with 0 and -1", [[0, -1]], [], 5],
    [
      "counts overlaps once",
      [
        [1, 3],
        [2, 4],
        [2, 3],
      ],
      [4, 5],
      3,
    ],
    [
      "ignores versions that do not exist",
      [
        [5, 100],
        [200, 300],
      ],
      [1, 2, 3, 4],
      1,
    ],
    ["deletes nothing for an empty range", [[3, 3]], [1, 2, 3, 4, 5], 0],
    ["deletes nothing for no range", [], [1, 2, 3, 4, 5], 0],
    ["takes the largest integer that JSON carries exactly", [[4, Number.MAX_SAFE_INTEGER]], [1, 2, 3], 2],
  ])("%s", async (_, ranges, left, deletedCount) => {
    const table = await tableWithVersions(5);
    const { body } = await remove(table, ranges);
    expect(body.deleted_count).toBe(deletedCount);
    expect(body.transaction_id).toBeTypeOf("string");
    expect(body.context).toBeTypeOf("object");
    expect(await versionsOf(table)).toEqual(left);
  });

  test("never touches the table's objects", async () => {
    const table = await tableWithVersions(3);
    const finalNames = [3, 2, 1].map((version) => finalName(version));
    const files = () => readdirSync(`/${pathOf(table)}/_versions`);
    await expect.poll(() => files()).toEqual(finalNames);
    await remove(table, [[0, -1]]);
    expect(files()).toEqual(finalNames);
  });

  test.each<[string, [number, number], string]>([
    ["a negative start", [-1, 5], "ranges.0.start_version"],
    ["an end below -1", [0, -2], "ranges.0.end_version"],
    ["an end before its start", [4, 3], "ranges.0"],
    ["a start past 2^53-1", [2 ** 53, -1], "ranges.0.start_version"],
    ["a fraction", [1.5, 2], "ranges.0.start_version"],
  ])("refuses %s and deletes nothing", async (_, range, path) => {
    const table = await tableWithVersions(2);
    const { error } = await remove(table, [range, [0, -1]]);
    expect(error).toMatchObject({ status: 400, code: 13 });
    expect(error.detail).toContain(path);
    expect(await versionsOf(table)).toEqual([1, 2]);
  });

  test("deletes on the branch that is named, and is 404 for an unknown one", async () => {
    const table = await tableWithVersions(2);
    await commit(catalog, table, 2, { branch: "exp" });
    expect((await remove(table, [[0, -1]], "exp")).body.deleted_count).toBe(1);
    expect(await versionsOf(table)).toEqual([1, 2]);
    expect((await remove(table, [[0, -1]], "other")).error).toMatchObject({ status: 404, code: 22 });
  });

  test("starts the numbering anew with 0 and -1, whose branch is then empty to a client", async () => {
    const table = await tableWithVersions(3);
    await commit(catalog, table, 3, { branch: "exp" });
    await remove(table, [[0, -1]]);
    expect((await commit(catalog, table, 1, { content: "anew" })).status).toBe(200);
    expect(readText(`/${pathOf(table)}/_versions/${finalName(1)}`)).toBe("anew");
    await remove(table, [[0, -1]], "exp");
    const gone = await catalog.call("listTableVersions", { id: table.id, branch: "exp" });
    expect(gone.error).toMatchObject({ status: 404, code: 22 });
    expect((await commit(catalog, table, 1, { branch: "exp" })).status).toBe(200);
  });
});
