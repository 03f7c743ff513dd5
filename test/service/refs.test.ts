import { existsSync, mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { CatalogError, type Contracts } from "@tiltyard/protocol";
import { describe, expect, test, vi } from "vitest";
import { readBytesMax } from "../../service/storage/object-store.ts";
import { openStore } from "../../service/store/open.ts";
import type { Session, Store } from "../../service/store/store.ts";
import {
  commit,
  declareTable,
  finalName,
  pathOf,
  stageManifest,
  startTestCatalog,
  type TestTable,
  useCatalog,
} from "../support/catalog.ts";

const catalog = useCatalog();

/** Creates a table with a number of versions, and a branch with one version that begins at the last of them. */
async function writtenTable(versions = 2, branch?: string): Promise<TestTable> {
  const table = await declareTable(catalog);
  for (let version = 1; version <= versions; version++) await commit(catalog, table, version);
  if (branch !== undefined) await writeBranch(table, branch, versions);
  return table;
}

/** Creates a branch like Lance: first the commit of its first version, then its file. */
async function writeBranch(table: TestTable, branch: string, version: number, more: object = {}): Promise<void> {
  await commit(catalog, table, version, { branch });
  const contents = {
    parentBranch: null,
    identifier: { version_mapping: [[version, `id of ${branch}`]] },
    parentVersion: version,
    createAt: 1_795_264_141,
    manifestSize: 9,
    metadata: {},
  };
  writeRef(table, `branches/${encodeURIComponent(branch)}`, { ...contents, ...more });
}

function refFile(table: TestTable, name: string): string {
  return `/${pathOf(table)}/_refs/${name}.json`;
}

function writeRef(table: TestTable, name: string, contents: unknown): void {
  const file = refFile(table, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof contents === "string" ? contents : JSON.stringify(contents));
}

function readRef(table: TestTable, name: string): unknown {
  return JSON.parse(readFileSync(refFile(table, name), "utf8"));
}

async function tagsOf({ id }: TestTable) {
  return (await catalog.call("listTableTags", { id })).body.tags;
}

async function transactionOf(name: string | undefined) {
  const answer = await catalog.call("describeTransaction", { id: name?.split("$") });
  return { status: answer.body.status, properties: answer.body.properties };
}

describe("a tag", () => {
  test("is written where Lance's clients look for it, as they write it", async () => {
    const table = await writtenTable();
    const { body } = await catalog.call("createTableTag", { id: table.id, tag: "v1.0-rc_1", version: 1 });
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(readRef(table, "tags/v1.0-rc_1")).toEqual({
      branch: null,
      version: 1,
      createdAt: time,
      updatedAt: time,
      manifestSize: "version 1".length,
      metadata: {},
    });
    expect(readdirSync(dirname(refFile(table, "tags/v1.0-rc_1")))).toEqual(["v1.0-rc_1.json"]);
    expect(await transactionOf(body.transaction_id)).toEqual({ status: "Succeeded", properties: { tag: "v1.0-rc_1" } });
  });

  test("names a version of the main branch, or of another one", async () => {
    const table = await writtenTable(2, "team/side");
    await catalog.call("createTableTag", { id: table.id, tag: "main", version: 1, branch: "main" });
    await catalog.call("createTableTag", { id: table.id, tag: "onside", version: 2, branch: "team/side" });
    expect(await tagsOf(table)).toEqual({
      main: { version: 1, manifestSize: 9 },
      onside: { version: 2, branch: "team/side", manifestSize: 9 },
    });
    const version = async (tag: string) => (await catalog.call("getTableTagVersion", { id: table.id, tag })).body;
    expect(await version("main")).toEqual({ version: 1 });
    expect(await version("onside")).toEqual({ version: 2, branch: "team/side" });
  });

  test("is created despite the lease of a process that crashed before the clock was set back", async () => {
    const { id, location } = await writtenTable();
    await using store = await openStore(catalog.database);
    const heldUntil = Date.now() + 24 * 3_600_000;
    const lease = { name: `refs ${location}`, holder: "crashed", heldUntil };
    await store.write(({ db }) => db.insertInto("leases").values(lease).execute());
    expect((await catalog.call("createTableTag", { id, tag: "t", version: 1 })).status).toBe(200);
  });

  test("is listed, moved and deleted when a Lance client created it", async () => {
    const table = await writtenTable();
    const made = { branch: null, version: 1, createdAt: "2026-11-21T12:29:01.910871662Z", manifestSize: 371 };
    writeRef(table, "tags/release", { ...made, metadata: { channel: "beta" }, later: "field" });
    expect(await tagsOf(table)).toEqual({ release: { version: 1, manifestSize: 371 } });

    await catalog.call("updateTableTag", { id: table.id, tag: "release", version: 2 });
    expect(readRef(table, "tags/release")).toEqual({
      ...made,
      version: 2,
      updatedAt: expect.any(String),
      manifestSize: 9,
      metadata: { channel: "beta" },
      later: "field",
    });
    await catalog.call("deleteTableTag", { id: table.id, tag: "release" });
    expect(existsSync(refFile(table, "tags/release"))).toBe(false);
    expect(await tagsOf(table)).toEqual({});
  });

  test("describes its table at its version", async () => {
    const table = await writtenTable(2, "side");
    await catalog.call("createTableTag", { id: table.id, tag: "t", version: 2, branch: "side" });
    const described = (more: object) => catalog.call("describeTable", { id: table.id, tag: "t", ...more });
    expect((await described({})).body).toMatchObject({ version: 2, location: table.location });
    expect((await described({ tag: "other" })).error).toMatchObject({ status: 404, code: 8 });
    for (const more of [{ version: 1 }, { branch: "main" }])
      expect((await described(more)).error).toMatchObject({ status: 400, code: 13 });
  });

  test("is created once by concurrent requests; the others get 409", async () => {
    const table = await writtenTable();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        catalog.call("createTableTag", { id: table.id, tag: "contested", version: 1 + (index % 2) }),
      ),
    );
    const winners = answers.filter((answer) => answer.status === 200);
    expect(winners).toHaveLength(1);
    for (const answer of answers.filter((each) => !winners.includes(each)))
      expect(answer.error).toMatchObject({ status: 409, code: 9 });
    const winner = answers.findIndex((answer) => answer.status === 200);
    expect(await tagsOf(table)).toMatchObject({ contested: { version: 1 + (winner % 2) } });
  });

  test("ends at one of the targets of concurrent moves", async () => {
    const table = await writtenTable(3);
    await catalog.call("createTableTag", { id: table.id, tag: "moving", version: 1 });
    const moves = await Promise.all(
      [2, 3, 2, 3].map((version) => catalog.call("updateTableTag", { id: table.id, tag: "moving", version })),
    );
    expect(moves.map((answer) => answer.status)).toEqual([200, 200, 200, 200]);
    expect([2, 3]).toContain((await tagsOf(table)).moving?.version);
    expect(readdirSync(dirname(refFile(table, "tags/moving")))).toEqual(["moving.json"]);
  });

  test.each([
    ["a version that does not exist", { version: 7 }, { status: 404, code: 11 }],
    ["a branch that does not exist", { version: 1, branch: "nowhere" }, { status: 404, code: 22 }],
    ["a version that is none", { version: -1 }, { status: 400, code: 13 }],
    ["no version", {}, { status: 400, code: 13 }],
  ])("is not created or moved for %s", async (_, asked, expected) => {
    const table = await writtenTable();
    await catalog.call("createTableTag", { id: table.id, tag: "there", version: 1 });
    for (const [operation, tag] of [
      ["createTableTag", "new"],
      ["updateTableTag", "there"],
    ] as const)
      expect((await catalog.call(operation, { id: table.id, tag, ...asked })).error).toMatchObject(expected);
    expect(await tagsOf(table)).toEqual({ there: { version: 1, manifestSize: 9 } });
  });

  test("is refused for a version whose manifest was cleaned up", async () => {
    const table = await writtenTable();
    unlinkSync(`/${pathOf(table)}/_versions/${finalName(1)}`);
    const answer = await catalog.call("createTableTag", { id: table.id, tag: "t", version: 1 });
    expect(answer.error).toMatchObject({ status: 404, code: 11 });
  });

  test.each([
    "",
    ".",
    ".a",
    "a.",
    "a..b",
    "a.lock",
    "a/b",
    "../a",
    "a b",
    "a+b",
    "caf\u00e9",
    "a\u0000",
    "x".repeat(201),
  ])("is not created with a name that Lance's clients could not use: %j", async (tag) => {
    const table = await writtenTable(1);
    const answer = await catalog.call("createTableTag", { id: table.id, tag, version: 1 });
    expect(answer.error).toMatchObject({ status: 400, code: 13 });
    expect(existsSync(`/${pathOf(table)}/_refs`)).toBe(false);
  });

  test.each(["getTableTagVersion", "updateTableTag", "deleteTableTag"] as const)(
    "causes 404 from %s when it does not exist",
    async (operation) => {
      const table = await writtenTable(1);
      for (const tag of ["missing", "../../secret", "x".repeat(1000), "\u0000"])
        expect(
          (await catalog.call(operation, { id: table.id, tag, ...(operation === "updateTableTag" && { version: 1 }) }))
            .error,
        ).toMatchObject({ status: 404, code: 8 });
    },
  );

  test("is reported when its file is foreign, and the others still work", async () => {
    const table = await writtenTable(1);
    await catalog.call("createTableTag", { id: table.id, tag: "good", version: 1 });
    const tooLarge = { version: 1, manifestSize: 1, metadata: { pad: "x".repeat(readBytesMax) } };
    for (const contents of ["{", "[]", "null", '{"version": -1}', JSON.stringify(tooLarge)]) {
      writeRef(table, "tags/bad", contents);
      const answer = await catalog.call("getTableTagVersion", { id: table.id, tag: "bad" });
      expect(answer.error).toMatchObject({ status: 409, code: 19, detail: expect.stringContaining("/tags/bad.json") });
    }
    expect((await catalog.call("getTableTagVersion", { id: table.id, tag: "good" })).body).toEqual({ version: 1 });
  });
});

test.each(["tag", "branch"] as const)(
  "a %s is not deleted by a process that was paused for longer than its lease",
  async (kind) => {
    let interrupt = async () => {};
    const wrapStore = (store: Store): Store => {
      const write = store.write.bind(store);
      return Object.assign(store, {
        write: async (...args: Parameters<typeof write>) => {
          const result = await write(...args);
          await interrupt();
          return result;
        },
      });
    };
    const own = await startTestCatalog({}, { wrapStore });
    const table = await declareTable(own);
    const { id } = table;
    await commit(own, table, 1);
    await own.call("createTableTag", { id, tag: "t", version: 1 });
    writeRef(table, "branches/b", { parentBranch: null, parentVersion: 1, createAt: 1_795_264_141, manifestSize: 9 });
    const [operation, request] =
      kind === "tag"
        ? (["deleteTableTag", { id, tag: "t" }] as const)
        : (["deleteTableBranch", { id, name: "b" }] as const);
    interrupt = async () => {
      const { body } = await own.call("listTransactions", { id: id.slice(0, 1) });
      // The intent is recorded directly before the deletion.
      if (!body.transactions.some(({ status }) => status === "Running")) return;
      interrupt = async () => {};
      const now = performance.now();
      vi.spyOn(performance, "now").mockReturnValue(now + 3_600_000);
    };
    const { status } = await own.call(operation, request);
    vi.restoreAllMocks();
    expect(status).toBe(503);
    expect(existsSync(refFile(table, kind === "tag" ? "tags/t" : "branches/b"))).toBe(true);
    await own.stop();
  },
);

describe("a list of tags", () => {
  test("has pages in the order of names, also by GET", async () => {
    const table = await writtenTable(1);
    const names = ["__proto__", "a", "b", "c", "d"];
    for (const tag of names) await catalog.call("createTableTag", { id: table.id, tag, version: 1 });
    const seen: string[] = [];
    let page_token: string | undefined;
    do {
      const query = new URLSearchParams({ limit: "2", ...(page_token !== undefined && { page_token }) });
      const answer = await catalog.fetch(`/v1/table/${table.id.join("%24")}/tags/list?${query}`);
      const page = (await answer.json()) as { tags: object; page_token?: string };
      expect(Object.keys(page.tags).length).toBeLessThanOrEqual(2);
      seen.push(...Object.keys(page.tags));
      page_token = page.page_token;
    } while (page_token !== undefined);
    expect(seen).toEqual(names);
  });

  test("continues correctly while tags appear and disappear", async () => {
    const table = await writtenTable(1);
    for (const tag of ["a", "c", "e"]) await catalog.call("createTableTag", { id: table.id, tag, version: 1 });
    const first = (await catalog.call("listTableTags", { id: table.id, limit: 2 })).body;
    expect(Object.keys(first.tags)).toEqual(["a", "c"]);
    await catalog.call("deleteTableTag", { id: table.id, tag: "c" });
    await catalog.call("createTableTag", { id: table.id, tag: "d", version: 1 });
    const rest = (await catalog.call("listTableTags", { id: table.id, page_token: first.page_token })).body;
    expect(Object.keys(rest.tags)).toEqual(["d", "e"]);
    expect(rest.page_token).toBeUndefined();
  });

  test("is empty for a table without any, and 404 for no table", async () => {
    const { id } = await declareTable(catalog);
    for (const operation of ["listTableTags", "listTableBranches"] as const) {
      const { body } = await catalog.call<keyof Pick<Contracts, "listTableTags" | "listTableBranches">>(operation, {
        id,
      });
      expect(Object.values(body)).toEqual([{}]);
      expect((await catalog.call(operation, { id: [...id, "x"] })).error).toMatchObject({ status: 404, code: 4 });
    }
  });

  test("refuses a token of another list", async () => {
    const table = await writtenTable(1);
    for (const tag of ["a", "b"]) await catalog.call("createTableTag", { id: table.id, tag, version: 1 });
    const { page_token } = (await catalog.call("listTableTags", { id: table.id, limit: 1 })).body;
    const answer = await catalog.call("listTableBranches", { id: table.id, page_token });
    expect(answer.error).toMatchObject({ status: 400, code: 13 });
  });
});

describe("a branch", () => {
  test("is listed when a Lance client created it, however the store encodes a slash", async () => {
    const table = await writtenTable(2, "side");
    await writeBranch(table, "team/deep", 2, { parentBranch: "side", metadata: { why: "a test" } });
    writeRef(table, "branches/nested/older", { parentVersion: 1, createAt: 7, manifestSize: 8 });
    const { body } = await catalog.call("listTableBranches", { id: table.id });
    const common = { parentVersion: 2, createAt: 1_795_264_141, manifestSize: 9 };
    expect(body.branches).toEqual({
      "nested/older": { parentVersion: 1, createAt: 7, manifestSize: 8 },
      side: { ...common, metadata: {} },
      "team/deep": { ...common, parentBranch: "side", metadata: { why: "a test" } },
    });
    const page = (await catalog.call("listTableBranches", { id: table.id, limit: 2 })).body;
    expect(Object.keys(page.branches)).toEqual(["nested/older", "side"]);
  });

  test("is deleted with its file, its data and its version records, and can be created again", async () => {
    const table = await writtenTable(2, "side");
    await commit(catalog, table, 3, { branch: "side" });
    const { body } = await catalog.call("deleteTableBranch", { id: table.id, name: "side" });
    expect(await transactionOf(body.transaction_id)).toEqual({ status: "Succeeded", properties: { branch: "side" } });
    expect((await catalog.call("listTableBranches", { id: table.id })).body.branches).toEqual({});
    expect(existsSync(`/${pathOf(table)}/tree/side`)).toBe(false);
    expect((await catalog.call("listTableVersions", { id: table.id, branch: "side" })).error).toMatchObject({
      status: 404,
      code: 22,
    });
    expect((await catalog.call("listTableVersions", { id: table.id })).body.versions).toHaveLength(2);
    expect((await commit(catalog, table, 1, { branch: "side" })).status).toBe(200);
  });

  test("leaves the branches whose folders are in its own", async () => {
    const table = await writtenTable(1, "side");
    await writeBranch(table, "side/sub", 1);
    // The commit of a branch precedes its file.
    await commit(catalog, table, 1, { branch: "side/fresh" });
    // A branch that was created outside the catalog is known only by its file.
    writeRef(table, "branches/side%2Fpast", { parentVersion: 1, createAt: 1, manifestSize: 1 });
    stageManifest(table, 1, { branch: "side/past", suffix: "past" });
    await catalog.call("deleteTableBranch", { id: table.id, name: "side" });
    const folder = `/${pathOf(table)}/tree/side`;
    expect(existsSync(`${folder}/_versions/${finalName(1)}`)).toBe(false);
    expect(readdirSync(`${folder}/past/_versions`)).toHaveLength(1);
    for (const other of ["sub", "fresh"]) expect(existsSync(`${folder}/${other}/_versions/${finalName(1)}`)).toBe(true);
    const { body } = await catalog.call("listTableVersions", { id: table.id, branch: "side/sub" });
    expect(body.versions).toHaveLength(1);
  });

  test("is not deleted while a tag names one of its versions", async () => {
    const table = await writtenTable(1, "side");
    await catalog.call("createTableTag", { id: table.id, tag: "needed", version: 1, branch: "side" });
    const refused = await catalog.call("deleteTableBranch", { id: table.id, name: "side" });
    expect(refused.error).toMatchObject({ status: 409, code: 19, detail: expect.stringContaining("tag needed") });
    expect(existsSync(`/${pathOf(table)}/tree/side/_versions/${finalName(1)}`)).toBe(true);
    await catalog.call("deleteTableTag", { id: table.id, tag: "needed" });
    expect((await catalog.call("deleteTableBranch", { id: table.id, name: "side" })).status).toBe(200);
  });

  test("is not deleted while a branch began on it, or on one that did", async () => {
    const table = await writtenTable(1, "side");
    const ids = (...names: string[]) => ({ version_mapping: names.map((name) => [1, `id of ${name}`]) });
    await writeBranch(table, "child", 1, { parentBranch: "side", identifier: undefined });
    await writeBranch(table, "grandchild", 1, { parentBranch: "gone", identifier: ids("side", "gone", "grandchild") });
    await writeBranch(table, "stranger", 1, { parentBranch: "gone", identifier: ids("other", "gone", "stranger") });
    const refused = async () => (await catalog.call("deleteTableBranch", { id: table.id, name: "side" })).error.detail;
    expect(await refused()).toContain("is used by branch child, branch grandchild.");
    await catalog.call("deleteTableBranch", { id: table.id, name: "child" });
    expect(await refused()).toContain("is used by branch grandchild.");
    await catalog.call("deleteTableBranch", { id: table.id, name: "grandchild" });
    expect((await catalog.call("deleteTableBranch", { id: table.id, name: "side" })).status).toBe(200);
  });

  test.each(["side/data", "side/_versions"])(
    "is not deleted while %s has files of another branch of a Lance client",
    async (name) => {
      const table = await writtenTable(1, "side");
      await writeBranch(table, name, 1);
      const remove = (each: string) => catalog.call("deleteTableBranch", { id: table.id, name: each });
      expect((await remove(name)).error).toMatchObject({
        status: 409,
        code: 19,
        detail: expect.stringContaining('is in a folder with files of branch "side". Delete that one first'),
      });
      expect(existsSync(`/${pathOf(table)}/tree/side/_versions/${finalName(1)}`)).toBe(true);
      for (const each of ["side", name]) expect((await remove(each)).status).toBe(200);
    },
  );

  test("is deleted by the retry of an interrupted deletion", async () => {
    const table = await writtenTable(1);
    await commit(catalog, table, 1, { branch: "half" });
    expect((await catalog.call("deleteTableBranch", { id: table.id, name: "half" })).status).toBe(200);
    expect(existsSync(`/${pathOf(table)}/tree/half`)).toBe(false);
    const again = await catalog.call("deleteTableBranch", { id: table.id, name: "half" });
    expect(again.error).toMatchObject({ status: 404, code: 22 });
  });

  test.each(["main", "", "..", "a/../b", "/a", "a b"])("cannot be deleted when its name is %j", async (name) => {
    const table = await writtenTable(1);
    const answer = await catalog.call("deleteTableBranch", { id: table.id, name });
    expect(answer.error).toMatchObject({ status: 400, code: 13 });
    expect((await catalog.call("listTableVersions", { id: table.id })).body.versions).toHaveLength(1);
  });
});

test("the deletion of a branch is refused while the files of tags are too large for the memory of one request", async () => {
  const table = await writtenTable(1, "b");
  const contents = { branch: null, version: 1, manifestSize: 9, more: "x".repeat(readBytesMax - 100) };
  for (let number = 0; number < 70; number++) writeRef(table, `tags/t${number}`, contents);
  const deletion = await catalog.call("deleteTableBranch", { id: table.id, name: "b" });
  expect(deletion.error).toMatchObject({ status: 409, detail: expect.stringContaining("_refs/tags have more than") });

  const { tags, page_token } = (await catalog.call("listTableTags", { id: table.id })).body;
  expect(Object.keys(tags).length).toBeLessThan(10);
  const rest = (await catalog.call("listTableTags", { id: table.id, page_token })).body;
  expect(Object.keys(rest.tags).filter((name) => name in tags)).toEqual([]);
});

test.each(["acquired", "released"])(
  "a tag can be created after the database failed while a lease was %s",
  async (step) => {
    let fails = false;
    const leasesIn = async ({ db }: Session) => (await db.selectFrom("leases").select("name").execute()).length;
    const failOnce = () => {
      fails = false;
      throw new CatalogError("ServiceUnavailable", "the database fails");
    };
    const wrapStore = (store: Store): Store => {
      const write = store.write.bind(store);
      const unreliable: Store["write"] = async (work, options) => {
        const before = await leasesIn(store.read);
        const result = await write(async (session) => {
          const done = await work(session);
          if (fails && step === "released" && (await leasesIn(session)) < before) failOnce();
          return done;
        }, options);
        if (fails && step === "acquired" && (await leasesIn(store.read)) > before) failOnce();
        return result;
      };
      return Object.assign(store, { write: unreliable });
    };
    const own = await startTestCatalog({}, { wrapStore });
    try {
      const { id } = await declareTable(own);
      await commit(own, { id, location: (await own.call("describeTable", { id })).body.location }, 1);
      fails = true;
      const failing = await own.call("createTableTag", { id, tag: "first", version: 1 });
      expect([failing.status, fails]).toEqual([step === "released" ? 200 : 503, false]);
      expect((await own.call("createTableTag", { id, tag: "second", version: 1 })).status).toBe(200);
    } finally {
      await own.stop();
    }
  },
);
