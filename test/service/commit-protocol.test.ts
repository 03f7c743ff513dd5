import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { CatalogError } from "@tiltyard/protocol";
import { afterEach, describe, expect, test } from "vitest";
import { readConfig } from "../../service/config.ts";
import { createLog } from "../../service/log.ts";
import { type RunningService, startService } from "../../service/start.ts";
import type { ObjectStore } from "../../service/storage/object-store.ts";
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
} from "../support/catalog.ts";
import { type CommitStep, commitSteps } from "../support/commit-steps.ts";
import { createTestDatabase, databaseKind } from "../support/database.ts";
import { doDeferredWork } from "../support/deferred-work.ts";
import { type Program, startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

function stagedFilesOf(table: TestTable): string[] {
  return readdirSync(`/${pathOf(table)}/_versions`).filter((name) => name.includes(".manifest-"));
}

describe("a service that is killed", () => {
  const settingsOf = (dataDir: string, databaseUrl: string) => ({
    TILTYARD_DATA_DIR: dataDir,
    TILTYARD_DATABASE_URL: databaseUrl,
    TILTYARD_PORT: "0",
    TILTYARD_LOG_LEVEL: "error",
  });

  async function startCrashing(
    settings: Readonly<Record<string, string>>,
    crashAt: string,
  ): Promise<{ program: Program; url: string }> {
    const program = startProgram(["test/support/crashing-service.ts", crashAt], settings);
    const printed = await program.printed("listening");
    return { program, url: /at (http:\S+)/.exec(printed)?.[1] ?? "" };
  }

  /** Starts the service again in the process of the tests. All state of the killed service is on the disk. */
  function startAgain(settings: Readonly<Record<string, string>>): Promise<RunningService> {
    const config = readConfig(settings);
    return startService(config, createLog(config.logLevel));
  }

  /** On SQLite, one step for each state of the database and of the files that a killed service can leave. */
  const steps: readonly CommitStep[] =
    databaseKind === "sqlite"
      ? ["before insert", "after insert", "after copy", "after delete", "after finish"]
      : commitSteps;
  /** The runs of clients without a response, which either repeat the request or delete the staged manifest. */
  const runs = [
    ...steps.map((step) => ({ step, clientDeletes: false })),
    ...(["after insert", "after copy"] as const).map((step) => ({ step, clientDeletes: true })),
  ];

  test.concurrent.for(runs)(
    "$step of a commit leaves nothing that needs a hand, its client deleting what it staged: $clientDeletes",
    async (run, { expect }) => {
      const dataDir = temporaryFolder("tiltyard-killed-");
      const database = await createTestDatabase();
      const settings = settingsOf(dataDir, database.url);
      const crashing = await startCrashing(settings, run.step);
      const key = readFileSync(join(dataDir, "development.key"), "utf8");
      const post = async (url: string, path: string, body: object = {}) => {
        const headers = { "x-api-key": key };
        const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
        return { status: response.status, body: await response.json() };
      };
      const { location } = (await post(crashing.url, "/v1/table/t/declare")).body as { location: string };
      const table = { id: ["t"], location };
      const create = (url: string, version: number, manifest_path: string) =>
        post(url, "/v1/table/t/version/create", { version, manifest_path, naming_scheme: "V2" });
      // The first version has its final name immediately, so that no work remains when the next service is killed.
      const first = `${pathOf(table)}/_versions/${finalName(1)}`;
      renameSync(`/${stageManifest(table, 1)}`, `/${first}`);
      expect((await create(crashing.url, 1, first)).status).toBe(200);
      const staged = stageManifest(table, 2, { suffix: "crash" });
      const isAcknowledged = commitSteps.indexOf(run.step) >= commitSteps.indexOf("before delete");
      if (isAcknowledged) expect((await create(crashing.url, 2, staged)).status).toBe(200);
      else await expect(create(crashing.url, 2, staged)).rejects.toThrow(TypeError);
      expect((await crashing.program.finished).signal).toBe("SIGKILL");
      if (run.clientDeletes) rmSync(`/${staged}`);

      const restarted = await startAgain(settings);
      // A manifest that was deleted before its copy was never acknowledged and is not a version.
      const committedFrom = run.clientDeletes ? "after copy" : "after insert";
      const committed = commitSteps.indexOf(run.step) >= commitSteps.indexOf(committedFrom);
      const untilNothingIsStaged = () => expect.poll(() => stagedFilesOf(table)).toEqual([]);
      if (committed) await untilNothingIsStaged();
      const list = async () =>
        ((await post(restarted.url, "/v1/table/t/version/list")).body as { versions: { manifest_path: string }[] })
          .versions;
      const versions = await list();
      expect(versions).toHaveLength(committed ? 2 : 1);
      for (const [index, { manifest_path }] of versions.entries()) {
        expect(manifest_path).toBe(`${pathOf(table)}/_versions/${finalName(index + 1)}`);
        expect(readText(`/${manifest_path}`)).toBe(`version ${index + 1}`);
      }

      const again = run.clientDeletes && !committed ? stageManifest(table, 2) : staged;
      expect((await create(restarted.url, 2, again)).status).toBe(200);
      expect((await create(restarted.url, 3, stageManifest(table, 3))).status).toBe(200);
      await untilNothingIsStaged();
      expect(await list()).toHaveLength(3);
      await restarted.stop();
      await database.drop();
    },
  );
});

describe("a failing storage", () => {
  const running: TestCatalog[] = [];
  afterEach(async () => {
    for (const catalog of running.splice(0)) await catalog.stop();
  });

  /** Starts a catalog over the real file system. Calls fail while their names are in `failing`. */
  async function startFailing(
    failing: Set<keyof ObjectStore>,
    wrap = (store: ObjectStore): ObjectStore => store,
  ): Promise<TestCatalog> {
    const unless = <Args extends unknown[], Result>(
      name: keyof ObjectStore,
      work: (...args: Args) => Promise<Result>,
    ) => {
      return async (...args: Args): Promise<Result> => {
        if (failing.has(name)) throw new CatalogError("ServiceUnavailable", `${name} fails`);
        return work(...args);
      };
    };
    const failingStore = (store: ObjectStore): ObjectStore => ({
      ...store,
      find: unless("find", store.find),
      persist: unless("persist", store.persist),
      copy: unless("copy", store.copy),
      libraryOptions: store.libraryOptions,
      syncFolder: unless("syncFolder", store.syncFolder),
      delete: unless("delete", store.delete),
      list: store.list,
      deleteFolder: unless("deleteFolder", store.deleteFolder),
    });
    const catalog = await startTestCatalog(
      {},
      { wrapStorage: (storage) => ({ at: async (location) => wrap(failingStore(await storage.at(location))) }) },
    );
    running.push(catalog);
    return catalog;
  }

  test("has one large manifest in memory at a time", async () => {
    let present = 0;
    let most = 0;
    const catalog = await startFailing(new Set(), (store) => ({
      ...store,
      persist: async (...request) => {
        const read = await store.persist(...request);
        present += 1;
        most = Math.max(most, present);
        await setImmediate();
        present -= 1;
        return read;
      },
    }));
    const tables = await Promise.all([1, 2, 3, 4].map(() => declareTable(catalog)));
    const entries = tables.map((table) => ({
      id: table.id,
      version: 1,
      manifest_path: stageManifest(table, 1, { content: new Uint8Array(9 * 1024 * 1024) }),
      naming_scheme: "V2",
    }));
    expect((await catalog.call("batchCreateTableVersions", { entries })).status).toBe(200);
    expect(most).toBe(1);
  });

  test("causes 503 and no version when it fails before the commit", async () => {
    const failing = new Set<keyof ObjectStore>(["persist"]);
    const catalog = await startFailing(failing);
    const table = await declareTable(catalog);
    const { status, error, headers } = await commit(catalog, table, 1);
    expect([status, error.code, headers.get("retry-after")]).toEqual([503, 17, "1"]);
    failing.clear();
    expect((await catalog.call("listTableVersions", { id: table.id })).body.versions).toEqual([]);
  });

  test("leaves the other versions of a batch when one cannot be copied and its manifest is deleted", async () => {
    let fails = true;
    const catalog = await startFailing(new Set(), (store) => ({
      ...store,
      copy: async (from, to, replaced) => {
        if (fails && to.endsWith(finalName(2))) throw new CatalogError("ServiceUnavailable", "copy fails");
        return store.copy(from, to, replaced);
      },
    }));
    const id = ["t"];
    const table = { id, location: `file://${encodeURI(catalog.dataDir)}/warehouse/${id[0]}.lance` };
    const staged = [1, 2, 3].map((version) => stageManifest(table, version));
    const operations = [
      { declare_table: table },
      ...staged.map((manifest_path, index) => ({ create_table_version: { id, version: index + 1, manifest_path } })),
    ];
    expect((await catalog.call("batchCommitTables", { operations })).status).toBe(503);
    fails = false;
    rmSync(`/${staged[1]}`);
    await doDeferredWork(catalog.database);
    const { versions } = (await catalog.call("listTableVersions", { id })).body;
    expect(versions.map(({ version }) => version)).toEqual([1, 3]);
    expect((await commit(catalog, table, 4)).status).toBe(200);
  });

  test("causes 503 for the commit and for readers when it cannot copy, and a retry returns the outcome", async () => {
    const failing = new Set<keyof ObjectStore>(["copy"]);
    const catalog = await startFailing(failing);
    const table = await declareTable(catalog);
    const staged = stageManifest(table, 1);
    const request = { id: table.id, version: 1, manifest_path: staged };
    const refused = await catalog.call("createTableVersion", request);
    expect([refused.status, refused.error.code, refused.headers.get("retry-after")]).toEqual([503, 17, "1"]);
    const read = () => catalog.call("describeTableVersion", { id: table.id, version: 1 });
    expect((await read()).status).toBe(503);
    expect((await catalog.call("listTableVersions", { id: table.id })).status).toBe(503);
    failing.clear();
    const final = `${pathOf(table)}/_versions/${finalName(1)}`;
    expect((await catalog.call("createTableVersion", request)).body.version.manifest_path).toBe(final);
    expect((await read()).body.version.manifest_path).toBe(final);
    await expect.poll(() => existsSync(`/${staged}`)).toBe(false);
  });

  test("loses no acknowledged version to an external writer that commits before the copy", async () => {
    const failing = new Set<keyof ObjectStore>(["copy"]);
    const catalog = await startFailing(failing);
    const table = await declareTable(catalog);
    const request = { id: table.id, version: 1, manifest_path: stageManifest(table, 1) };
    expect((await catalog.call("createTableVersion", request)).status).toBe(503);
    writeFileSync(`/${pathOf(table)}/_versions/${finalName(1)}`, "the other's");
    failing.clear();
    expect((await catalog.call("createTableVersion", request)).error).toMatchObject({ status: 409, code: 14 });
    const { versions } = (await catalog.call("listTableVersions", { id: table.id })).body;
    expect(versions.map(({ manifest_path }) => readText(`/${manifest_path}`))).toEqual(["the other's"]);
  });

  test("leaves a version that no client requests again to deferred work when it cannot copy", async () => {
    const failing = new Set<keyof ObjectStore>(["copy"]);
    const catalog = await startFailing(failing);
    const table = await declareTable(catalog);
    expect((await commit(catalog, table, 1)).status).toBe(503);
    failing.clear();
    await doDeferredWork(catalog.database);
    const final = `/${pathOf(table)}/_versions/${finalName(1)}`;
    await expect.poll(() => existsSync(final)).toBe(true);
    await expect.poll(() => stagedFilesOf(table)).toEqual([]);
  });

  test("lets no commit follow a version of an empty branch that is recorded, and then loses its name", async () => {
    const [searched, second, first] = [1, 2, 3].map(() => Promise.withResolvers<void>());
    const copying = Promise.withResolvers<void>();
    const catalog = await startFailing(new Set(), (store) => ({
      ...store,
      list: async function* (folder, before) {
        yield* store.list(folder, before);
        searched?.resolve();
      },
      persist: async (key) => {
        if (key.endsWith("second")) await second?.promise;
        return store.persist(key);
      },
      copy: async (from, to, replaced) => {
        copying.resolve();
        await first?.promise;
        return store.copy(from, to, replaced);
      },
    }));
    const table = await declareTable(catalog);
    // The second commit sees an empty branch, on which the first version is recorded while its manifest becomes
    // durable.
    const follower = commit(catalog, table, 2, { suffix: "second" });
    await searched?.promise;
    const answer = commit(catalog, table, 1, { suffix: "first" });
    await copying.promise;
    second?.resolve();
    expect((await follower).status).toBe(409);
    writeFileSync(`/${pathOf(table)}/_versions/${finalName(1)}`, "the other's");
    first?.resolve();
    expect((await answer).status).toBe(409);
    const { versions } = (await catalog.call("listTableVersions", { id: table.id })).body;
    expect(versions.map(({ manifest_path }) => readText(`/${manifest_path}`))).toEqual(["the other's"]);
  });

  test("leaves a readable version, and its staged file until later, when it cannot delete", async () => {
    const failing = new Set<keyof ObjectStore>(["delete"]);
    const catalog = await startFailing(failing);
    const table = await declareTable(catalog);
    const { body } = await commit(catalog, table, 1);
    expect(body.version.manifest_path).toBe(`${pathOf(table)}/_versions/${finalName(1)}`);
    expect(stagedFilesOf(table)).toHaveLength(1);
    failing.clear();
    await catalog.call("listTableVersions", { id: table.id });
    await expect.poll(() => stagedFilesOf(table)).toEqual([]);
  });

  test("restores no version when a commit is retried after all versions were deleted", async () => {
    const catalog = await startFailing(new Set(["delete"]));
    const table = await declareTable(catalog);
    const manifest_path = stageManifest(table, 1);
    const create = () => catalog.call("createTableVersion", { id: table.id, version: 1, manifest_path });
    expect((await create()).status).toBe(200);
    const ranges = [{ start_version: 0, end_version: -1 }];
    await catalog.call("batchDeleteTableVersions", { id: table.id, ranges });
    expect(existsSync(`/${manifest_path}`)).toBe(true);
    const retry = await create();
    expect([retry.status, retry.error?.detail]).toEqual([409, expect.stringContaining("deleted since")]);
    expect((await catalog.call("listTableVersions", { id: table.id })).body.versions).toEqual([]);
    expect((await commit(catalog, table, 1, { suffix: "anew", content: "anew" })).status).toBe(200);
  });

  test("keeps the location of a dropped table reserved until it can delete it, and delays no request", async () => {
    const failing = new Set<keyof ObjectStore>(["deleteFolder"]);
    const catalog = await startFailing(failing);
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    expect((await catalog.call("dropTable", { id: table.id })).status).toBe(200);
    const declareAgain = () => catalog.call("declareTable", { id: table.id, location: table.location });
    expect((await declareAgain()).error).toMatchObject({ status: 409, code: 5 });
    expect(existsSync(`/${pathOf(table)}`)).toBe(true);

    failing.clear();
    await doDeferredWork(catalog.database);
    expect((await declareAgain()).status).toBe(200);
    expect(existsSync(`/${pathOf(table)}`)).toBe(false);
  });

  test("slowly deletes nothing of the next table at that location", async () => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const catalog = await startFailing(new Set(), (store) => ({
      ...store,
      deleteFolder: async (folder, proceed) => {
        await released;
        await store.deleteFolder(folder, proceed);
      },
    }));
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    expect((await catalog.call("dropTable", { id: table.id })).status).toBe(200);
    const next = { id: table.id, location: table.location };
    expect((await catalog.call("declareTable", next)).error).toMatchObject({ status: 409, code: 5 });
    // Another process over the same database waits for the claim of the slow one.
    await doDeferredWork(catalog.database, { leavesClaimed: true });
    expect((await catalog.call("declareTable", next)).error).toMatchObject({ status: 409, code: 5 });
    release();
    await expect.poll(async () => (await catalog.call("declareTable", next)).status).toBe(200);
    expect((await commit(catalog, table, 1)).status).toBe(200);
    expect(existsSync(`/${pathOf(table)}/_versions/${finalName(1)}`)).toBe(true);
  });
});
