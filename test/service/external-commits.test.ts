import { mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { ObjectStore } from "../../service/storage/object-store.ts";
import type { Storage } from "../../service/storage/storage.ts";
import {
  commit,
  declareTable,
  finalName,
  pathOf,
  readText,
  stageManifest,
  startTestCatalog,
  type TestCatalog,
  type TestTable,
  useCatalog,
} from "../support/catalog.ts";

const catalog = useCatalog();

async function tableWithVersions(count: number): Promise<TestTable> {
  const table = await declareTable(catalog);
  for (let version = 1; version <= count; version++) await commit(catalog, table, version);
  return table;
}

/** Commits as a Lance writer does that knows of no catalog: under the final name, at once. */
function commitExternally(table: TestTable, version: number, content = `external ${version}`): string {
  const folder = `/${pathOf(table)}/_versions`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/${finalName(version)}`, content);
  return `${folder}/${finalName(version)}`.slice(1);
}

async function versionsOf(table: TestTable, request: object = {}): Promise<number[]> {
  const { body } = await catalog.call("listTableVersions", { id: table.id, ...request });
  return body.versions.map((each) => each.version);
}

describe("a version that a writer committed without the catalog", () => {
  test.each([{}, { descending: true, limit: 1 }])("is in the list %j", async (request) => {
    const table = await tableWithVersions(2);
    commitExternally(table, 3);
    commitExternally(table, 4);
    expect(await versionsOf(table, request)).toEqual("limit" in request ? [4] : [1, 2, 3, 4]);
  });

  test("is described, by its number and as the latest", async () => {
    const table = await tableWithVersions(1);
    const manifest_path = commitExternally(table, 2);
    for (const request of [{ version: 2 }, {}]) {
      const { version } = (await catalog.call("describeTableVersion", { id: table.id, ...request })).body;
      expect(version).toMatchObject({ version: 2, manifest_path });
    }
  });

  test("is not buried by a commit through the catalog, which is told to start from it", async () => {
    const table = await tableWithVersions(1);
    commitExternally(table, 2, "a backfill");
    const answer = await commit(catalog, table, 2);
    expect(answer.error).toMatchObject({ status: 409, code: 14 });
    expect(readText(`/${pathOf(table)}/_versions/${finalName(2)}`)).toBe("a backfill");
    expect((await commit(catalog, table, 3)).status).toBe(200);
    expect(await versionsOf(table)).toEqual([1, 2, 3]);
  });

  test("is taken up once by many readers", async () => {
    const table = await tableWithVersions(1);
    commitExternally(table, 2);
    const lists = await Promise.all(Array.from({ length: 10 }, () => versionsOf(table)));
    expect(new Set(lists.map(String))).toEqual(new Set(["1,2"]));
  });

  test("is not made of what is left from records that were deleted", async () => {
    const table = await tableWithVersions(3);
    const ranges = [{ start_version: 0, end_version: -1 }];
    await catalog.call("batchDeleteTableVersions", { id: table.id, ranges });
    expect(await versionsOf(table)).toEqual([]);
    await commit(catalog, table, 1, { content: "anew" });
    expect(await versionsOf(table)).toEqual([1]);
    expect((await commit(catalog, table, 2, { content: "anew" })).status).toBe(200);
    expect(readText(`/${pathOf(table)}/_versions/${finalName(2)}`)).toBe("anew");
  });

  test("leaves a gap alone", async () => {
    const table = await tableWithVersions(1);
    commitExternally(table, 3);
    expect(await versionsOf(table)).toEqual([1]);
  });
});

describe("a branch that a client deleted without the catalog", () => {
  const folderOf = (table: TestTable) => `/${pathOf(table)}/tree/exp`;

  test("can be made again", async () => {
    const table = await tableWithVersions(1);
    for (const version of [1, 2, 3]) await commit(catalog, table, version, { branch: "exp" });
    rmSync(folderOf(table), { recursive: true });
    expect((await commit(catalog, table, 1, { branch: "exp", content: "anew" })).status).toBe(200);
    expect(await versionsOf(table, { branch: "exp" })).toEqual([1]);
    rmSync(folderOf(table), { recursive: true });
    expect((await commit(catalog, table, 7, { branch: "exp" })).status).toBe(200);
    expect(await versionsOf(table, { branch: "exp" })).toEqual([7]);
  });

  test("is not taken for deleted while its latest manifest is there, nor is main ever", async () => {
    const table = await tableWithVersions(2);
    for (const version of [1, 2]) await commit(catalog, table, version, { branch: "exp" });
    expect((await commit(catalog, table, 1, { branch: "exp" })).error).toMatchObject({ status: 409, code: 14 });
    rmSync(`/${pathOf(table)}/_versions`, { recursive: true });
    expect((await commit(catalog, table, 1)).error).toMatchObject({ status: 409, code: 14 });
    expect(await versionsOf(table)).toEqual([1, 2]);
  });
});

describe("a commit that cannot be finished", () => {
  /** A catalog in which something happens between the record of a commit and the copy of its manifest. */
  async function startInterrupted(interrupt: () => void | Promise<void>): Promise<TestCatalog> {
    return startOver((store) => ({
      ...store,
      copy: async (from, to) => {
        await interrupt();
        return store.copy(from, to);
      },
    }));
  }

  function startOver(wrapStore: (store: ObjectStore) => ObjectStore): Promise<TestCatalog> {
    const wrapStorage = (storage: Storage): Storage => ({
      at: async (location) => wrapStore(await storage.at(location)),
    });
    return startTestCatalog({}, { wrapStorage });
  }

  test.each([
    ["a moment later than this one was staged", 1_000],
    ["before, and named it only now", -500],
  ])(
    "because another writer took its name is a conflict, and the other's version stands: written %s",
    async (_, age) => {
      let interrupt = () => {};
      const own = await startInterrupted(() => interrupt());
      const table = await declareTable(own);
      await commit(own, table, 1);
      const longAgo = new Date(Date.now() - 60_000);
      utimesSync(`/${pathOf(table)}/_versions/${finalName(1)}`, longAgo, longAgo);
      interrupt = () => {
        interrupt = () => {};
        const file = `/${commitExternally(table, 2, "the other")}`;
        const written = new Date(Date.now() + age);
        utimesSync(file, written, written);
      };
      expect((await commit(own, table, 2)).error).toMatchObject({ status: 409, code: 14 });
      const { versions } = (await own.call("listTableVersions", { id: table.id })).body;
      expect(versions.map((each) => each.version)).toEqual([1, 2]);
      expect(readText(`/${versions[1]?.manifest_path}`)).toBe("the other");
      await own.stop();
    },
  );

  test("because another writer took its name is described to those who ask meanwhile as the other's", async () => {
    let interrupt = async () => {};
    const own = await startInterrupted(() => interrupt());
    const table = await declareTable(own);
    await commit(own, table, 1);
    const describeVersion = (version: number) => own.call("describeTableVersion", { id: table.id, version });
    let described: ReturnType<typeof describeVersion> | undefined;
    interrupt = async () => {
      interrupt = async () => {};
      commitExternally(table, 2, "the other");
      described = describeVersion(2);
      // A later request is answered while that one waits for the commit.
      await describeVersion(1);
    };
    expect((await commit(own, table, 2)).status).toBe(409);
    const version = (await described)?.body.version;
    expect(readText(`/${version?.manifest_path}`)).toBe("the other");
    await own.stop();
  });

  test("because its manifest was deleted is a conflict, and its number is free again", async () => {
    let interrupt = () => {};
    const own = await startInterrupted(() => interrupt());
    const table = await declareTable(own);
    await commit(own, table, 1);
    const staged = stageManifest(table, 2);
    interrupt = () => rmSync(`/${staged}`, { force: true });
    const request = { id: table.id, version: 2, manifest_path: staged };
    expect((await own.call("createTableVersion", request)).error).toMatchObject({ status: 409, code: 14 });
    interrupt = () => {};
    const { versions } = (await own.call("listTableVersions", { id: table.id })).body;
    expect(versions.map((each) => each.version)).toEqual([1]);
    expect((await commit(own, table, 2)).status).toBe(200);
    await own.stop();
  });

  test("for a while, in a store whose objects all have identities of their own, stands", async () => {
    let failures = 1;
    const own = await startOver((store) => ({
      ...store,
      find: async (key) => {
        const found = await store.find(key);
        return found && { ...found, identity: key };
      },
      delete: async (key) => {
        if (failures-- > 0) throw new Error("the store is gone for a moment");
        await store.delete(key);
      },
    }));
    const table = await declareTable(own);
    const { transaction_id = "" } = (await commit(own, table, 1)).body;
    // Only the first of these may find the commit still being finished.
    for (let time = 0; time < 5; time++) {
      const { versions } = (await own.call("listTableVersions", { id: table.id })).body;
      expect(versions.map((each) => each.version)).toEqual([1]);
    }
    const { status } = (await own.call("describeTransaction", { id: transaction_id.split("$") })).body;
    expect([failures, status]).toEqual([-1, "Succeeded"]);
    await own.stop();
  });

  test("leaves a branch without a record as unknown as it was", async () => {
    let interrupt = () => {};
    const own = await startInterrupted(() => interrupt());
    const table = await declareTable(own);
    const staged = stageManifest(table, 5, { branch: "exp" });
    interrupt = () => rmSync(`/${staged}`, { force: true });
    const request = { id: table.id, version: 5, branch: "exp", manifest_path: staged };
    expect((await own.call("createTableVersion", request)).status).toBe(409);
    const list = await own.call("listTableVersions", { id: table.id, branch: "exp" });
    expect(list.error).toMatchObject({ status: 404, code: 22 });
    await own.stop();
  });
});
