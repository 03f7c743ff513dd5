import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CatalogError } from "@tiltyard/protocol";
import { afterEach, describe, expect, test, vi } from "vitest";
import { createFinisher, type Finisher } from "../../service/domain/finisher.ts";
import { createLog } from "../../service/log.ts";
import type { ObjectStore } from "../../service/storage/object-store.ts";
import { createStorage } from "../../service/storage/storage.ts";
import { openStore } from "../../service/store/open.ts";
import type { Store } from "../../service/store/store.ts";
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
import { commitSteps } from "../support/commit-steps.ts";
import { createTestDatabase } from "../support/database.ts";
import { type Program, startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

function stagedFilesOf(table: TestTable): string[] {
  return readdirSync(`/${pathOf(table)}/_versions`).filter((name) => name.includes(".manifest-"));
}

describe("a service that is killed", () => {
  /** Starts the crashing service, or the real one when no step is given. */
  async function start(
    dataDir: string,
    databaseUrl: string,
    crashAt?: string,
  ): Promise<{ program: Program; url: string }> {
    const args = crashAt === undefined ? ["service/main.ts", "serve"] : ["test/support/crashing-service.ts", crashAt];
    const program = startProgram(args, {
      TILTYARD_DATA_DIR: dataDir,
      TILTYARD_DATABASE_URL: databaseUrl,
      TILTYARD_PORT: "0",
      TILTYARD_LOG_LEVEL: "error",
    });
    const printed = await program.printed(crashAt === undefined ? "curl" : "listening");
    return { program, url: /at (http:\S+)/.exec(printed)?.[1] ?? "" };
  }

  /** A client that gets no answer repeats its request, or gives up and deletes what it staged. */
  const runs = [
    ...commitSteps.map((step) => ({ step, clientDeletes: false })),
    ...(["after insert", "before copy", "after copy"] as const).map((step) => ({ step, clientDeletes: true })),
  ];

  test.concurrent.each(runs)(
    "$step of a commit leaves nothing that needs a hand, its client deleting what it staged: $clientDeletes",
    async (run) => {
      const dataDir = temporaryFolder("tiltyard-killed-");
      const database = await createTestDatabase();
      const crashing = await start(dataDir, database.url, run.step);
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
      expect((await create(crashing.url, 1, stageManifest(table, 1))).status).toBe(200);
      const staged = stageManifest(table, 2, { suffix: "crash" });
      await expect(create(crashing.url, 2, staged)).rejects.toThrow(TypeError);
      expect((await crashing.program.finished).signal).toBe("SIGKILL");
      if (run.clientDeletes) rmSync(`/${staged}`);

      const restarted = await start(dataDir, database.url);
      // What was deleted before it was copied was never acknowledged, and is no version.
      const committedFrom = run.clientDeletes ? "after copy" : "after insert";
      const committed = commitSteps.indexOf(run.step) >= commitSteps.indexOf(committedFrom);
      if (committed) await vi.waitFor(() => expect(stagedFilesOf(table)).toEqual([]), { timeout: 10_000 });
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
      expect(stagedFilesOf(table)).toEqual([]);
      expect(await list()).toHaveLength(3);
      restarted.program.child.kill("SIGTERM");
      expect((await restarted.program.finished).code).toBe(0);
      await database.drop();
    },
    60_000,
  );
});

describe("a storage that fails", () => {
  const running: TestCatalog[] = [];
  afterEach(async () => {
    for (const catalog of running.splice(0)) await catalog.stop();
  });

  /** A catalog over the real file system, whose calls fail while they are among `failing`. */
  async function startFailing(failing: Set<keyof ObjectStore>): Promise<TestCatalog> {
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
      delete: unless("delete", store.delete),
      list: store.list,
      deleteFolder: unless("deleteFolder", store.deleteFolder),
    });
    const catalog = await startTestCatalog(
      {},
      { wrapStorage: (storage) => ({ at: async (location) => failingStore(await storage.at(location)) }) },
    );
    running.push(catalog);
    return catalog;
  }

  test("before the commit leads to 503, and to no version", async () => {
    const failing = new Set<keyof ObjectStore>(["persist"]);
    const catalog = await startFailing(failing);
    const table = await declareTable(catalog);
    const { status, error, headers } = await commit(catalog, table, 1);
    expect([status, error.code, headers.get("retry-after")]).toEqual([503, 17, "1"]);
    failing.clear();
    expect((await catalog.call("listTableVersions", { id: table.id })).body.versions).toEqual([]);
  });

  test("to copy leaves the staged path in the answer, until a reader comes and it works again", async () => {
    const failing = new Set<keyof ObjectStore>(["copy"]);
    const catalog = await startFailing(failing);
    const table = await declareTable(catalog);
    const staged = stageManifest(table, 1);
    const request = { id: table.id, version: 1, manifest_path: staged };
    expect((await catalog.call("createTableVersion", request)).body.version.manifest_path).toBe(staged);
    const read = async () =>
      (await catalog.call("describeTableVersion", { id: table.id, version: 1 })).body.version.manifest_path;
    expect(await read()).toBe(staged);
    failing.clear();
    const final = `${pathOf(table)}/_versions/${finalName(1)}`;
    expect(await read()).toBe(final);
    expect(existsSync(`/${staged}`)).toBe(false);
    expect((await catalog.call("createTableVersion", request)).body.version.manifest_path).toBe(final);
  });

  test("to delete leaves a version that is read under its final name, and its staged file until later", async () => {
    const failing = new Set<keyof ObjectStore>(["delete"]);
    const catalog = await startFailing(failing);
    const table = await declareTable(catalog);
    const { body } = await commit(catalog, table, 1);
    expect(body.version.manifest_path).toBe(`${pathOf(table)}/_versions/${finalName(1)}`);
    expect(stagedFilesOf(table)).toHaveLength(1);
    failing.clear();
    await catalog.call("listTableVersions", { id: table.id });
    expect(stagedFilesOf(table)).toEqual([]);
  });

  test("to delete a dropped table keeps its location taken until the next start deletes it", async () => {
    const failing = new Set<keyof ObjectStore>(["deleteFolder"]);
    const catalog = await startFailing(failing);
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    expect((await catalog.call("dropTable", { id: table.id })).status).toBe(200);
    expect(existsSync(`/${pathOf(table)}`)).toBe(true);
    const again = await catalog.call("declareTable", { id: table.id, location: table.location });
    expect(again.error).toMatchObject({ status: 409, code: 5 });

    await using store = await openStore(catalog.database);
    await finisherOf(store).sweep();
    expect(existsSync(`/${pathOf(table)}`)).toBe(false);
    expect((await catalog.call("declareTable", { id: table.id, location: table.location })).status).toBe(200);
  });

  test("deletes nothing of the table that is there next when it comes late", async () => {
    const catalog = await startFailing(new Set());
    const table = await declareTable(catalog);
    expect((await catalog.call("dropTable", { id: table.id })).status).toBe(200);
    const next = { id: table.id, location: table.location };
    expect((await catalog.call("declareTable", next)).status).toBe(200);
    expect((await commit(catalog, table, 1)).status).toBe(200);

    // Another replica, which read before the drop was finished that it is to be.
    await using store = await openStore(catalog.database);
    await finisherOf(store).deleteObjects(table.location);
    expect(existsSync(`/${pathOf(table)}/_versions/${finalName(1)}`)).toBe(true);
  });
});

function finisherOf(store: Store): Finisher {
  return createFinisher({
    store,
    storage: createStorage({ s3ForcePathStyle: false }),
    log: createLog("silent"),
    dropRetentionMs: 0,
  });
}
