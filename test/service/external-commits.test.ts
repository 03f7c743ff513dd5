import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { CatalogError } from "@tiltyard/protocol";
import { describe, expect, test, vi } from "vitest";
import { requireTable } from "../../service/domain/require.ts";
import type { ObjectStore } from "../../service/storage/object-store.ts";
import type { Storage } from "../../service/storage/storage.ts";
import { openStore } from "../../service/store/open.ts";
import { deregisterTable } from "../../service/tables/drop.ts";
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
  uniqueName,
  useCatalog,
} from "../support/catalog.ts";
import { doDeferredWork, untilRecorded } from "../support/deferred-work.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog();

async function tableWithVersions(count: number): Promise<TestTable> {
  const table = await declareTable(catalog);
  for (let version = 1; version <= count; version++) await commit(catalog, table, version);
  return table;
}

/** Commits like a Lance writer without a catalog: directly under the final name. */
function commitExternally(table: TestTable, version: number, content = `external ${version}`): string {
  const folder = `/${pathOf(table)}/_versions`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/${finalName(version)}`, content);
  return `${folder}/${finalName(version)}`.slice(1);
}

async function untilRecordedIn({ database }: TestCatalog): Promise<void> {
  await using store = await openStore(database);
  await untilRecorded(store);
}

/** Waits for a number of turns of the event loop. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
}

function startOver(
  wrapStore: (store: ObjectStore) => ObjectStore,
  environment: Readonly<Record<string, string>> = {},
): Promise<TestCatalog> {
  const wrapStorage = (storage: Storage): Storage => ({
    at: async (location) => wrapStore(await storage.at(location)),
  });
  return startTestCatalog(environment, { wrapStorage });
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

  test("is not overwritten by a commit through the catalog, which gets a conflict", async () => {
    const table = await tableWithVersions(1);
    commitExternally(table, 2, "a backfill");
    const answer = await commit(catalog, table, 2);
    expect(answer.error).toMatchObject({ status: 409, code: 14 });
    expect(readText(`/${pathOf(table)}/_versions/${finalName(2)}`)).toBe("a backfill");
    expect((await commit(catalog, table, 3)).status).toBe(200);
    expect(await versionsOf(table)).toEqual([1, 2, 3]);
  });

  test.each([
    { columns: ["c"], names: "job" },
    { columns: ["c", "d"], names: "unknown" },
    { columns: [], names: "unknown" },
  ])("is attributed to $names while backfills of $columns run", async ({ columns, names }) => {
    const id = await createFilms(catalog);
    const new_columns = ["c", "d"].map((name) => ({ name, computed: "id * 2" }));
    await catalog.call("alterTableAddColumns", { id, new_columns });
    const { location = "", version = 0 } = (await catalog.call("describeTable", { id, load_detailed_metadata: true }))
      .body;
    const jobs: string[] = [];
    for (const column of columns) {
      const { job_id } = (await catalog.call("alterTableBackfillColumns", { id, column })).body;
      const actions = [{ setStatusAction: { status: "Running" } }];
      await catalog.call("alterTransaction", { id: job_id.split("$"), actions });
      jobs.push(job_id);
    }
    commitExternally({ id, location }, version + 1);
    await catalog.call("listTableVersions", { id });
    const { body } = await catalog.call("listTransactions", { id: id.slice(0, -1), ascending: false });
    const adoption = body.transactions.find(({ operation }) => operation === "AdoptTableVersion");
    expect(adoption?.principal).toBe(names === "job" ? `job:${jobs[0]} for bootstrap` : "unknown");
  });

  test("is adopted once by concurrent readers", async () => {
    const table = await tableWithVersions(1);
    commitExternally(table, 2);
    const lists = await Promise.all(Array.from({ length: 10 }, () => versionsOf(table)));
    expect(new Set(lists.map(String))).toEqual(new Set(["1,2"]));
  });

  test("is not created from manifests of deleted records", async () => {
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

describe("a table whose first versions were committed without the catalog", () => {
  async function declaredWith(count: number): Promise<TestTable> {
    const table = await declareTable(catalog);
    for (let version = 1; version <= count; version++) {
      commitExternally(table, version);
      // This turn of the event loop lets clients detect connections that the catalog has closed.
      if (version % 1_000 === 0) await new Promise(setImmediate);
    }
    return table;
  }
  const contentsOf = async (table: TestTable, request: object = {}) => {
    const { body } = await catalog.call("listTableVersions", { id: table.id, ...request });
    return body.versions.map(({ manifest_path }) => readText(`/${manifest_path}`));
  };

  test("has them for any first request", async () => {
    expect(await versionsOf(await declaredWith(3))).toEqual([1, 2, 3]);
    const described = await catalog.call("describeTable", { id: (await declaredWith(1)).id, check_declared: true });
    expect(described.body.is_only_declared).toBe(false);
    const { id } = await declaredWith(2);
    expect((await catalog.call("describeTableVersion", { id, version: 1 })).body.version.version).toBe(1);
    expect(
      (await catalog.call("describeTable", { id: (await declareTable(catalog)).id, check_declared: true })).body,
    ).toMatchObject({ is_only_declared: true });
  });

  test("loses none of them to the first commit through the catalog", async () => {
    const table = await declaredWith(5);
    expect((await commit(catalog, table, 3, { content: "stale" })).error).toMatchObject({ status: 409, code: 14 });
    expect((await commit(catalog, table, 6, { content: "through" })).status).toBe(200);
    const external = [1, 2, 3, 4, 5].map((version) => `external ${version}`);
    expect(await contentsOf(table)).toEqual([...external, "through"]);
  });

  test("has those of its branches, and a branch without a manifest is unknown", async () => {
    const table = await declaredWith(1);
    const folder = `/${pathOf(table)}/tree/exp/_versions`;
    const list = (branch: string) => catalog.call("listTableVersions", { id: table.id, branch });
    expect((await list("exp")).error).toMatchObject({ status: 404, code: 22 });
    mkdirSync(folder, { recursive: true });
    writeFileSync(`${folder}/${finalName(4)}`, "on a branch");
    expect((await list("exp")).body.versions.map(({ version }) => version)).toEqual([4]);
    expect((await commit(catalog, table, 5, { branch: "exp" })).status).toBe(200);
    expect(await catalog.call("listTableVersions", { id: table.id })).toMatchObject({ status: 200 });
  });

  test("lists the remaining versions after a clean-up and continues after the latest", async () => {
    const table = await declaredWith(6);
    for (const version of [1, 3]) rmSync(`/${pathOf(table)}/_versions/${finalName(version)}`);
    expect(await versionsOf(table)).toEqual([2, 4, 5, 6]);
    expect((await commit(catalog, table, 3)).error).toMatchObject({ status: 409, code: 14 });
    expect((await commit(catalog, table, 7)).status).toBe(200);
  });

  test("does not list versions that were cleaned up after their adoption", async () => {
    const table = await tableWithVersions(30);
    await using store = await openStore(catalog.database);
    await untilRecorded(store);
    const { transactions } = (await catalog.call("listTransactions", { table: table.id.join("$") })).body;
    const remaining = [2, 3, 17, 29, 30];
    for (let version = 1; version <= 30; version++)
      if (!remaining.includes(version)) rmSync(`/${pathOf(table)}/_versions/${finalName(version)}`);
    expect(await versionsOf(table, { descending: true, limit: 1 })).toEqual([30]);
    expect(await versionsOf(table, { descending: true, limit: 3 })).toEqual([30, 29, 17]);
    expect(await versionsOf(table)).toEqual(remaining);
    expect((await catalog.call("describeTableVersion", { id: table.id, version: 4 })).status).toBe(404);
    const after = (await catalog.call("listTransactions", { table: table.id.join("$") })).body.transactions;
    expect(after.slice(0, after.length - transactions.length)).toMatchObject([
      { operation: "ForgetTableVersion", principal: "unknown" },
    ]);
    expect((await commit(catalog, table, 4)).error).toMatchObject({ status: 409, code: 14 });
    expect((await commit(catalog, table, 31)).status).toBe(200);
  });

  test("does not list versions of a branch that were cleaned up behind many tagged ones", async () => {
    const table = await tableWithVersions(1);
    const branch = "exp";
    for (let version = 1; version <= 30; version++) await commit(catalog, table, version, { branch });
    await using store = await openStore(catalog.database);
    await untilRecorded(store);
    const folder = `/${pathOf(table)}/tree/${branch}/_versions`;
    for (const version of [25, 26, 27, 29]) rmSync(`${folder}/${finalName(version)}`);
    const kept = [...Array.from({ length: 24 }, (_, index) => index + 1), 28, 30];
    expect(await versionsOf(table, { branch })).toEqual(kept);
    expect(await versionsOf(table)).toEqual([1]);
    expect((await catalog.call("describeTableVersion", { id: table.id, branch, version: 26 })).status).toBe(404);
  });

  test("lists versions while the folder has no manifests, because it may not be mounted", async () => {
    const table = await tableWithVersions(3);
    for (const version of [1, 2, 3]) rmSync(`/${pathOf(table)}/_versions/${finalName(version)}`);
    expect(await versionsOf(table)).toEqual([1, 2, 3]);
  });

  test("adopts thousands of versions in steps, without those deleted meanwhile", async () => {
    const latest = { descending: true, limit: 1 };
    const all = async (table: TestTable) => {
      const versions: number[] = [];
      for (let page_token = ""; ; ) {
        const { body } = await catalog.call("listTableVersions", { id: table.id, ...(page_token && { page_token }) });
        versions.push(...body.versions.map(({ version }) => version));
        if (body.page_token === undefined) return versions;
        page_token = body.page_token;
      }
    };
    const count = 6_000;
    const [whole, cut] = [await declaredWith(count), await declaredWith(count)];
    for (const table of [whole, cut]) expect(await versionsOf(table, latest)).toEqual([count]);
    const ranges = [{ start_version: 1, end_version: 5_500 }];
    await catalog.call("batchDeleteTableVersions", { id: cut.id, ranges });
    await expect.poll(() => all(whole), { interval: 200 }).toHaveLength(count);
    expect(await all(cut)).toEqual(Array.from({ length: count - 5_499 }, (_, index) => 5_500 + index));
    for (let version = count + 1; version <= count + 1_200; version++) commitExternally(whole, version);
    expect(await versionsOf(whole, latest)).toEqual([count + 1_200]);
  });
});

test("a table that is purged while its folder is read does not exist", async () => {
  let interrupt = async () => {};
  const readSlowly = (store: ObjectStore): ObjectStore => ({
    ...store,
    list: async function* (folder, before) {
      const found = [];
      for await (const each of store.list(folder, before)) found.push(each);
      await interrupt();
      yield* found;
    },
  });
  const own = await startOver(readSlowly, { TILTYARD_DROP_RETENTION: "0" });
  const table = await declareTable(own);
  commitExternally(table, 1);
  interrupt = async () => {
    interrupt = async () => {};
    await own.call("dropTable", { id: table.id });
    // The location is free again when the row of the table is deleted.
    const other = { id: [...table.id.slice(0, -1), "other"], location: table.location };
    await expect.poll(async () => (await own.call("declareTable", other)).status).toBe(200);
  };
  expect((await own.call("listTableVersions", { id: table.id })).error).toMatchObject({ status: 404, code: 4 });
  await own.stop();
});

describe("a branch whose records were all deleted", () => {
  const deleteAll = (table: TestTable, branch?: string) =>
    catalog.call("batchDeleteTableVersions", {
      id: table.id,
      ranges: [{ start_version: 0, end_version: -1 }],
      ...(branch !== undefined && { branch }),
    });
  const nameIn = (table: TestTable, version: number) => `/${pathOf(table)}/_versions/${finalName(version)}`;

  test("does not get them back by a new version of the same second", async () => {
    const table = await tableWithVersions(3);
    await deleteAll(table);
    await commit(catalog, table, 1, { content: "anew" });
    // Some stores report times in whole seconds.
    const second = new Date(1_795_000_000_000);
    for (const version of [1, 2, 3]) utimesSync(nameIn(table, version), second, second);
    expect(await versionsOf(table)).toEqual([1]);
    expect((await commit(catalog, table, 2, { content: "anew" })).status).toBe(200);
    expect([await versionsOf(table), readText(nameIn(table, 2))]).toEqual([[1, 2], "anew"]);
  });

  test("loses nothing that a writer past the catalog puts there, under a number that it had or a later one", async () => {
    const [same, later] = [await tableWithVersions(3), await tableWithVersions(3)];
    for (const table of [same, later]) await deleteAll(table);
    rmSync(`/${pathOf(same)}/_versions`, { recursive: true });
    commitExternally(same, 1);
    commitExternally(later, 4);
    expect([await versionsOf(same), await versionsOf(later)]).toEqual([[1], [4]]);
    expect((await commit(catalog, same, 1)).error).toMatchObject({ status: 409, code: 14 });
    expect(readText(nameIn(same, 1))).toBe("external 1");
  });

  test("has a version that an external writer creates again after the deletion of its manifest", async () => {
    const table = await declareTable(catalog);
    commitExternally(table, 1);
    expect(await versionsOf(table)).toEqual([1]);
    await deleteAll(table);
    rmSync(nameIn(table, 1));
    commitExternally(table, 1, "anew");
    expect(await versionsOf(table)).toEqual([1]);
  });

  test("keeps manifests of external writers and does not reuse their numbers", async () => {
    const table = await declareTable(catalog);
    commitExternally(table, 1);
    expect(await versionsOf(table)).toEqual([1]);
    await deleteAll(table);
    expect(await versionsOf(table)).toEqual([]);
    expect((await commit(catalog, table, 1)).error).toMatchObject({ status: 409, code: 14 });
    expect(readText(nameIn(table, 1))).toBe("external 1");
    expect((await commit(catalog, table, 2)).status).toBe(200);
  });

  test("is emptied even before its versions were adopted", async () => {
    const table = await declareTable(catalog);
    commitExternally(table, 1);
    expect((await deleteAll(table)).body.deleted_count).toBe(1);
    expect(await versionsOf(table)).toEqual([]);
  });

  test("is emptied again even before its versions were adopted", async () => {
    const table = await tableWithVersions(3);
    await deleteAll(table);
    rmSync(`/${pathOf(table)}/_versions`, { recursive: true });
    commitExternally(table, 1);
    expect((await deleteAll(table)).body.deleted_count).toBe(1);
    expect(await versionsOf(table)).toEqual([]);
  });

  test("may be emptied again and again", async () => {
    const table = await declareTable(catalog);
    for (const round of [1, 2, 3]) {
      for (const version of [1, 2]) {
        const content = `round ${round} version ${version}`;
        expect((await commit(catalog, table, version, { content })).status).toBe(200);
        expect(readText(nameIn(table, version))).toBe(content);
      }
      expect(await versionsOf(table)).toEqual([1, 2]);
      expect((await deleteAll(table)).body.deleted_count).toBe(2);
      expect(await versionsOf(table)).toEqual([]);
    }
  });
});

describe("a branch that a client deleted without the catalog", () => {
  const folderOf = (table: TestTable) => `/${pathOf(table)}/tree/exp`;

  test("can be created again", async () => {
    const table = await tableWithVersions(1);
    for (const version of [1, 2, 3]) await commit(catalog, table, version, { branch: "exp" });
    rmSync(folderOf(table), { recursive: true });
    expect((await commit(catalog, table, 1, { branch: "exp", content: "anew" })).status).toBe(200);
    expect(await versionsOf(table, { branch: "exp" })).toEqual([1]);
    rmSync(folderOf(table), { recursive: true });
    // Even the next number is allowed: main had one more version when the branch was created again.
    for (const version of [7, 8]) {
      expect((await commit(catalog, table, version, { branch: "exp" })).status).toBe(200);
      expect(await versionsOf(table, { branch: "exp" })).toEqual([version]);
      rmSync(folderOf(table), { recursive: true });
    }
  });

  test("is not considered deleted while its latest manifest exists, and main never is", async () => {
    const table = await tableWithVersions(2);
    for (const version of [1, 2]) await commit(catalog, table, version, { branch: "exp" });
    expect((await commit(catalog, table, 1, { branch: "exp" })).error).toMatchObject({ status: 409, code: 14 });
    rmSync(`/${pathOf(table)}/_versions`, { recursive: true });
    expect((await commit(catalog, table, 1)).error).toMatchObject({ status: 409, code: 14 });
    expect(await versionsOf(table)).toEqual([1, 2]);
  });
});

describe("a commit that cannot be finished", () => {
  /** Returns a function that recognizes the first copy of a staged manifest. A concurrent request copies it again. */
  function firstCopies(): (from: string) => boolean {
    const copied = new Set<string>();
    return (from) => copied.size < copied.add(from).size;
  }

  /** Starts a catalog that runs `interrupt` between the record of a commit and the copy of its manifest. */
  async function startInterrupted(
    interrupt: () => void | Promise<void>,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<TestCatalog> {
    const isFirst = firstCopies();
    const interrupted = (store: ObjectStore): ObjectStore => ({
      ...store,
      copy: async (from, to, replaced) => {
        if (isFirst(from)) await interrupt();
        return store.copy(from, to, replaced);
      },
    });
    return startOver(interrupted, environment);
  }

  test.each([
    ["a moment later than this one was staged", 1_000],
    ["before, and named it only now", -500],
  ])("is a conflict with the version of a writer that used its name first: written %s", async (_, age) => {
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
  });

  test("is described as the other writer's version after a conflict of names", async () => {
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
      // A later request is processed while that one waits for the commit.
      await describeVersion(1);
    };
    expect((await commit(own, table, 2)).status).toBe(409);
    const version = (await described)?.body.version;
    expect(readText(`/${version?.manifest_path}`)).toBe("the other");
    await own.stop();
  });

  test("is a conflict when its manifest was deleted, and its number is free again", async () => {
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

  test("keeps no reader from later versions when a client cleaned its version up first", async () => {
    const own = await startOver((store) => ({
      ...store,
      delete: () => Promise.reject(new CatalogError("ServiceUnavailable", "nothing can be deleted")),
    }));
    const table = await declareTable(own);
    for (let version = 1; version <= 3; version++) expect((await commit(own, table, version)).status).toBe(200);
    const folder = `/${pathOf(table)}/_versions`;
    for (const name of readdirSync(folder)) if (name.startsWith(finalName(1))) rmSync(`${folder}/${name}`);
    const listed = async () => {
      const { versions } = (await own.call("listTableVersions", { id: table.id })).body;
      return versions.map((each) => each.version);
    };
    await expect.poll(listed).toEqual([2, 3]);
    expect((await commit(own, table, 4)).status).toBe(200);
    await own.stop();
  });

  test("stays when the delay is temporary, in a store whose objects all have their own identities", async () => {
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
    // Only the first of these requests may find the commit unfinished.
    for (let time = 0; time < 5; time++) {
      const { versions } = (await own.call("listTableVersions", { id: table.id })).body;
      expect(versions.map((each) => each.version)).toEqual([1]);
    }
    const { status } = (await own.call("describeTransaction", { id: transaction_id.split("$") })).body;
    expect(status).toBe("Succeeded");
    // Several of the finishing requests may delete the staged manifest.
    await expect.poll(() => readdirSync(`/${pathOf(table)}/_versions`)).toEqual([finalName(1)]);
    expect(failures).toBeLessThan(0);
    await own.stop();
  });

  test.each([undefined, "exp"])(
    "is not served in place of a later commit when all versions were deleted meanwhile, on branch %s",
    async (branch) => {
      let interrupt = async () => {};
      const own = await startInterrupted(() => interrupt());
      const table = await declareTable(own);
      await commit(own, table, 1);
      const on = branch === undefined ? {} : { branch };
      const first = branch === undefined ? 2 : 1;
      let second: Promise<number> | undefined;
      interrupt = async () => {
        interrupt = async () => {};
        const ranges = [{ start_version: 0, end_version: -1 }];
        await own.call("batchDeleteTableVersions", { id: table.id, ...on, ranges });
        second = commit(own, table, first, { content: "second", ...on }).then(({ status }) => status);
        // The second commit is recorded, and possibly placed, before the first continues.
        const describe = () => own.call("describeTableVersion", { id: table.id, version: first, ...on });
        await expect.poll(async () => (await describe()).status).toBe(200);
      };
      await commit(own, table, first, { content: "first", ...on });
      expect(await second).toBe(200);
      const { versions } = (await own.call("listTableVersions", { id: table.id, ...on })).body;
      expect(versions.map(({ manifest_path }) => readText(`/${manifest_path}`))).toEqual(["second"]);
      await own.stop();
    },
  );

  test("leaves the numbering of its branch unchanged, also without another record", async () => {
    let interrupt = () => {};
    const own = await startInterrupted(() => interrupt());
    const table = await declareTable(own);
    for (const version of [1, 2]) await commit(own, table, version);
    await own.call("batchDeleteTableVersions", { id: table.id, ranges: [{ start_version: 1, end_version: 3 }] });
    const staged = stageManifest(table, 3);
    interrupt = () => rmSync(`/${staged}`, { force: true });
    const request = { id: table.id, version: 3, manifest_path: staged };
    expect((await own.call("createTableVersion", request)).status).toBe(409);
    interrupt = () => {};
    expect((await commit(own, table, 1)).error).toMatchObject({ status: 409, code: 14 });
    expect((await commit(own, table, 3)).status).toBe(200);
    await own.stop();
  });

  describe("in a batch", () => {
    const startBatch = async (interrupt: (other: TestTable, to: string) => void) => {
      const isFirst = firstCopies();
      let pair: readonly [TestTable, TestTable] | undefined;
      const own = await startOver((store) => ({
        ...store,
        copy: async (from, to, replaced) => {
          if (isFirst(from) && pair !== undefined) interrupt(pair[1], to);
          return store.copy(from, to, replaced);
        },
      }));
      const tables = [await declareTable(own), await declareTable(own)] as const;
      for (const table of tables) await commit(own, table, 1);
      pair = tables;
      return { own, tables };
    };
    const entryOf = ({ id, location }: TestTable) => ({
      id,
      version: 2,
      manifest_path: stageManifest({ id, location }, 2, { content: "batch" }),
    });
    const latestOf = async (own: TestCatalog, table: TestTable) => {
      const { body } = await own.call("listTableVersions", { id: table.id });
      return body.versions.map(({ manifest_path }) => readText(`/${manifest_path}`)).at(-1);
    };

    test.each(["versions", "commit"])("rolls back all of it, with its other changes: %s", async (kind) => {
      const { own, tables } = await startBatch((other, to) => {
        if (to.startsWith(pathOf(other))) commitExternally(other, 2, "the other");
      });
      const entries = tables.map(entryOf);
      const declared = [uniqueName("declared")];
      const answer =
        kind === "versions"
          ? await own.call("batchCreateTableVersions", { entries })
          : await own.call("batchCommitTables", {
              operations: [
                { declare_table: { id: declared } },
                ...entries.map((entry) => ({ create_table_version: entry })),
              ],
            });
      expect(answer.error).toMatchObject({ status: 409, code: 14 });
      expect(await Promise.all(tables.map((table) => latestOf(own, table)))).toEqual(["version 1", "the other"]);
      expect(existsSync(`/${pathOf(tables[0])}/_versions/${finalName(2)}`)).toBe(false);
      expect((await own.call("tableExists", { id: declared })).status).toBe(404);
      const { transactions } = (await own.call("listTransactions", { id: [] })).body;
      expect(transactions.filter(({ operation }) => operation.startsWith("Batch"))).toEqual([]);
      expect((await commit(own, tables[0], 2)).status).toBe(200);
      await own.stop();
    });

    test("keeps the version of an external writer and those based on it", async () => {
      const { own, tables } = await startBatch((other, to) => {
        if (!to.startsWith(pathOf(other))) return;
        commitExternally(tables[0], 3, "on top of the batch");
        commitExternally(other, 2, "the other");
      });
      // The other table is placed last.
      const answer = await own.call("batchCreateTableVersions", { entries: tables.map(entryOf) });
      expect(answer.error).toMatchObject({ status: 409, code: 14 });
      expect(await Promise.all(tables.map((table) => latestOf(own, table)))).toEqual([
        "on top of the batch",
        "the other",
      ]);
      await own.stop();
    });

    test("removes a version whose successor is left over from before the deletion of all versions", async () => {
      let interrupt = () => {};
      const own = await startOver((store) => ({
        ...store,
        copy: async (from, to, replaced) => {
          if (to.startsWith(pathOf(two))) interrupt();
          return store.copy(from, to, replaced);
        },
      }));
      const [one, two] = [await declareTable(own), await declareTable(own)];
      for (const version of [1, 2]) await commit(own, one, version);
      await commit(own, two, 1);
      const ranges = [{ start_version: 0, end_version: -1 }];
      expect((await own.call("batchDeleteTableVersions", { id: one.id, ranges })).status).toBe(200);
      interrupt = () => commitExternally(two, 2, "the other");
      const first = { id: one.id, version: 1, manifest_path: stageManifest(one, 1, { content: "batch" }) };
      const answer = await own.call("batchCreateTableVersions", { entries: [first, entryOf(two)] });
      expect(answer.error).toMatchObject({ status: 409, code: 14 });
      expect((await own.call("listTableVersions", { id: one.id })).body.versions).toEqual([]);
      await own.stop();
    });

    test("leaves nothing that is placed late, after another table's version was refused", async () => {
      const final = (table: TestTable) => `${pathOf(table)}/_versions/${finalName(2)}`;
      const rollsBack = Promise.withResolvers<void>();
      let late = "";
      const own = await startOver((store) => ({
        ...store,
        find: async (key) => {
          if (key === late) rollsBack.resolve();
          return store.find(key);
        },
        copy: async (from, to, replaced) => {
          if (!to.endsWith(finalName(2))) return store.copy(from, to, replaced);
          if (to !== final(one)) {
            commitExternally(two, 2, "the other");
            return store.copy(from, to, replaced);
          }
          late = to;
          await Promise.race([rollsBack.promise, turns(10_000)]);
          return store.copy(from, to, replaced);
        },
      }));
      const [one, two] = [await declareTable(own), await declareTable(own)];
      for (const table of [one, two]) await commit(own, table, 1);
      const answer = await own.call("batchCreateTableVersions", { entries: [one, two].map(entryOf) });
      expect(answer.error).toMatchObject({ status: 409, code: 14 });
      expect([await latestOf(own, one), existsSync(`/${final(one)}`)]).toEqual(["version 1", false]);
      await own.stop();
    });

    test("leaves nothing that is placed after a task has rolled it back", async () => {
      let interrupt = async () => {};
      const own = await startInterrupted(() => interrupt());
      const tables = [await declareTable(own), await declareTable(own)] as const;
      for (const table of tables) await commit(own, table, 1);
      interrupt = async () => {
        interrupt = async () => {};
        await doDeferredWork(own.database);
      };
      const answer = await own.call("batchCreateTableVersions", { entries: tables.map(entryOf) });
      expect(answer.error).toMatchObject({ status: 409, detail: expect.stringContaining("the timeout expired") });
      expect(await Promise.all(tables.map((table) => latestOf(own, table)))).toEqual(["version 1", "version 1"]);
      for (const table of tables) expect((await commit(own, table, 2)).status).toBe(200);
      await own.stop();
    });

    test("places nothing more after its process was paused for longer than the timeout", async () => {
      let placed = 0;
      const own = await startOver((store) => ({
        ...store,
        copy: async (from, to, replaced) => {
          placed += 1;
          const now = performance.now();
          vi.spyOn(performance, "now").mockReturnValue(now + 3_600_000);
          return store.copy(from, to, replaced);
        },
      }));
      const table = await declareTable(own);
      const entries = Array.from({ length: 20 }, (_, index) => ({
        id: table.id,
        version: index + 1,
        manifest_path: stageManifest(table, index + 1),
      }));
      const answer = await own.call("batchCreateTableVersions", { entries });
      vi.restoreAllMocks();
      expect(answer.error).toMatchObject({ status: 409, detail: expect.stringContaining("the timeout expired") });
      expect(placed).toBeLessThan(entries.length);
      expect((await own.call("listTableVersions", { id: table.id })).body.versions).toEqual([]);
      await own.stop();
    });

    test("does not undo a commit that follows its rollback by another request", async () => {
      let interrupt = async () => {};
      const final = (table: TestTable) => `${pathOf(table)}/_versions/${finalName(2)}`;
      let copied = false;
      const own = await startOver((store) => ({
        ...store,
        find: async (key) => {
          // The rollback looks for the manifest that it has placed.
          if (copied && key === final(one)) await interrupt();
          return store.find(key);
        },
        copy: async (from, to, replaced) => {
          if (to === final(two)) commitExternally(two, 2, "the other");
          copied ||= to === final(one);
          return store.copy(from, to, replaced);
        },
      }));
      const [one, two] = [await declareTable(own), await declareTable(own)];
      for (const table of [one, two]) await commit(own, table, 1);
      const entries = [one, two].map(entryOf);
      const retry = () => own.call("createTableVersion", entries[0]);
      interrupt = async () => {
        interrupt = async () => {};
        // A reader finishes the rollback unless it waits for this one.
        const { status } = await own.call("listTableVersions", { id: one.id });
        if (status === 200) expect((await retry()).status).toBe(200);
      };
      expect((await own.call("batchCreateTableVersions", { entries })).status).toBe(409);
      expect((await retry()).status).toBe(200);
      expect(await latestOf(own, one)).toBe("batch");
      await own.stop();
    });

    test("commits nothing when one of its tables is dropped before the commit point", async () => {
      let interrupt = async () => {};
      const own = await startInterrupted(() => interrupt(), { TILTYARD_DROP_RETENTION: "1h" });
      const tables = [await declareTable(own), await declareTable(own)] as const;
      for (const table of tables) await commit(own, table, 1);
      interrupt = async () => {
        interrupt = async () => {};
        await own.call("dropTable", { id: tables[1].id });
      };
      const answer = await own.call("batchCreateTableVersions", { entries: tables.map(entryOf) });
      expect(answer.error).toMatchObject({ status: 404, code: 4 });
      expect(await latestOf(own, tables[0])).toBe("version 1");
      await own.stop();
    });

    test("leaves the other tables readable when one of its tables is deregistered before the commit point", async () => {
      let interrupt = async () => {};
      const own = await startInterrupted(() => interrupt());
      const tables = [await declareTable(own), await declareTable(own)] as const;
      for (const table of tables) await commit(own, table, 1);
      await using other = await openStore(own.database);
      interrupt = async () => {
        interrupt = async () => {};
        // This process does not wake the task of the catalog that deletes the records.
        await other.write(async (session) => deregisterTable(session, await requireTable(session, tables[1].id)));
      };
      const answer = await own.call("batchCreateTableVersions", { entries: tables.map(entryOf) });
      expect(answer.error).toMatchObject({ status: 404, code: 4 });
      expect(await latestOf(own, tables[0])).toBe("version 1");
      await own.stop();
    });

    test("stays although a reader looks for its staged manifest after another request has deleted that", async () => {
      const final = (table: TestTable) => `${pathOf(table)}/_versions/${finalName(2)}`;
      const isDeleted = Promise.withResolvers<void>();
      let reading: Promise<{ readonly status: number }> | undefined;
      const own = await startOver((store) => ({
        ...store,
        // Each object has its own identity, as in S3 with a KMS key.
        find: async (key) => {
          const found = await store.find(key);
          return found && { ...found, identity: key };
        },
        persist: async (key, bytesMax) => {
          const found = await store.persist(key, bytesMax);
          return found && { ...found, identity: key };
        },
        copy: async (from, to, replaced) => {
          if (reading !== undefined && to === final(one)) await isDeleted.promise;
          return { ...(await store.copy(from, to, replaced)), identity: to };
        },
        syncFolder: async (folder) => {
          if (existsSync(`/${final(one)}`)) {
            reading ??= own.call("describeTableVersion", { id: one.id, version: 2 });
            await turns(1_000);
          }
          return store.syncFolder(folder);
        },
        delete: async (key, only) => {
          await store.delete(key, only);
          if (!key.startsWith(final(one)) || key === final(one)) return;
          isDeleted.resolve();
          // The deletion is recorded after the reader has looked.
          await Promise.race([reading, turns(10_000)]);
        },
      }));
      const [one, two] = [await declareTable(own), await declareTable(own)];
      for (const table of [one, two]) await commit(own, table, 1);
      await untilRecordedIn(own);
      const { body } = await own.call("batchCreateTableVersions", { entries: [one, two].map(entryOf) });
      await expect.poll(async () => (await reading)?.status).toBe(200);
      expect(await latestOf(own, one)).toBe("batch");
      const { status } = (await own.call("describeTransaction", { id: body.transaction_id?.split("$") })).body;
      expect(status).toBe("Succeeded");
      await own.stop();
    });

    test("is invisible until it is complete, also after a crash", async () => {
      let seen: readonly (string | undefined)[] = [];
      let interrupt = async () => {};
      const isFirst = firstCopies();
      const own = await startOver((store) => ({
        ...store,
        copy: async (from, to, replaced) => {
          const copied = await store.copy(from, to, replaced);
          if (isFirst(from)) await interrupt();
          return copied;
        },
      }));
      const tables = [await declareTable(own), await declareTable(own)] as const;
      for (const table of tables) await commit(own, table, 1);
      interrupt = async () => {
        interrupt = async () => {};
        seen = await Promise.all(tables.map((table) => latestOf(own, table)));
        expect((await commit(own, tables[0], 2)).error).toMatchObject({ status: 409, code: 14 });
      };
      const entries = tables.map(entryOf);
      expect((await own.call("batchCreateTableVersions", { entries })).status).toBe(200);
      expect(seen).toEqual(["version 1", "version 1"]);
      expect(await Promise.all(tables.map((table) => latestOf(own, table)))).toEqual(["batch", "batch"]);
      // The repeated batch has the same response.
      expect((await own.call("batchCreateTableVersions", { entries })).status).toBe(200);
      await own.stop();
    });
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
