import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { CatalogError } from "@tiltyard/protocol";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { versionOfManifest } from "../../service/lance/version-names.ts";
import type { ObjectStore, StoredObject } from "../../service/storage/object-store.ts";
import type { Store } from "../../service/store/store.ts";
import {
  declareTable,
  finalName,
  pathOf,
  readText,
  stageManifest,
  startTestCatalog,
  type TestCatalog,
  type TestTable,
} from "../support/catalog.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** fast-check derives its choices from the seed. Set other seeds and more runs to search for new failures. */
const seed = Number(process.env.TILTYARD_MODEL_SEED ?? 1);
const runs = Number(process.env.TILTYARD_MODEL_RUNS ?? 20);
const tableCount = 2;
const replicaCount = 2;

/** The faults of a storage call. `after` executes the call and loses its response. */
type Fault = "none" | "before" | "after" | "late";

const tableIndex = fc.nat({ max: tableCount - 1 });
const replicaIndex = fc.nat({ max: replicaCount - 1 });
const on = { table: tableIndex, replica: replicaIndex };
const Action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("commit" as const), ...on }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("repeat" as const), ...on }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("batch" as const), ...on }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("read" as const), ...on }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("external" as const), ...on }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("delete" as const), ...on, upTo: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete all" as const), ...on }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill" as const), ...on }) },
);
type Action = typeof Action extends fc.Arbitrary<infer Chosen> ? Chosen : never;

const Scripts = fc.array(fc.array(Action, { minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 5 });
const Faults = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.constant("none" as const) },
    { weight: 1, arbitrary: fc.constantFrom<Fault>("before", "after", "late") },
  ),
  { maxLength: 60 },
);
/** The number of versions of each table that are written outside the catalog before its first use. */
const Beginnings = fc.array(fc.nat({ max: 2 }), { minLength: tableCount, maxLength: tableCount });

interface Span {
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** A version whose commit was acknowledged to a client. */
interface Committed extends Span {
  readonly table: number;
  readonly version: number;
  readonly content: string;
}

/** All responses to clients. The order of events is counted instead of timed. */
class History {
  readonly committed: Committed[] = [];
  /** The rejected manifests. */
  readonly refused: { readonly content: string; readonly isOfBatch: boolean }[] = [];
  /** The contents of manifests that writers outside the catalog placed, by file. */
  readonly external = new Map<string, string>();
  readonly reads: (Span & { readonly table: number; readonly latest: number })[] = [];
  /** The deletions of versions up to a number, or of all versions. */
  readonly deletions: (Span & { readonly table: number; readonly upTo: number })[] = [];
  #events = 0;

  now(): number {
    this.#events += 1;
    return this.#events;
  }

  /** Reports whether a version is deleted: it existed before an acknowledged deletion was requested. */
  isDeleted({ table, version, answeredAt }: Committed): boolean {
    return this.deletions.some(
      (deletion) =>
        deletion.table === table &&
        deletion.upTo >= version &&
        deletion.askedAt > answeredAt &&
        Number.isFinite(deletion.answeredAt),
    );
  }

  /** Reports whether a version may be deleted: a deletion was requested at the same time or later. */
  mayBeDeleted({ table, version, askedAt }: Committed): boolean {
    return this.deletions.some(
      (deletion) => deletion.table === table && deletion.upTo >= version && deletion.answeredAt > askedAt,
    );
  }
}

/** One of the processes that share the database. */
interface Replica {
  readonly catalog: TestCatalog;
  /** Stops all work and all responses of the replica. */
  kill(): void;
  /** Resolves when the replica was killed. */
  readonly killed: Promise<void>;
}

let faults: Fault[] = [];
let database: TestDatabase;
let warehouse: string;
let replicas: Replica[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  warehouse = temporaryFolder("tiltyard-model-");
  for (let index = 0; index < replicaCount; index += 1) replicas.push(await startReplica());
});
afterAll(async () => {
  for (const { catalog } of replicas) await catalog.stop();
  await database.drop();
});

async function startReplica(): Promise<Replica> {
  let isDead = false;
  const whileAlive = <Arguments extends unknown[], Result>(work: (...args: Arguments) => Promise<Result>) => {
    return async (...args: Arguments): Promise<Result> => {
      if (isDead) return new Promise<never>(() => {});
      const result = await work(...args);
      return isDead ? new Promise<never>(() => {}) : result;
    };
  };
  const mortal = (store: ObjectStore): ObjectStore => ({
    ...store,
    find: whileAlive(store.find),
    persist: whileAlive(store.persist),
    copy: whileAlive(store.copy),
    syncFolder: whileAlive(store.syncFolder),
    delete: whileAlive(store.delete),
  });
  const wrapStore = (store: Store): Store => ({
    read: store.read,
    write: whileAlive((work, options) => store.write(work, options)) as Store["write"],
    createLimiter: (options) => store.createLimiter(options),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  });
  const catalog = await startTestCatalog(
    { TILTYARD_DATABASE_URL: database.url, TILTYARD_WAREHOUSE: `file://${warehouse}` },
    {
      wrapStore,
      wrapStorage: (storage) => ({ at: async (location) => mortal(unreliable(inSeconds(await storage.at(location)))) }),
    },
  );
  const { promise: killed, resolve } = Promise.withResolvers<void>();
  return {
    catalog,
    killed,
    kill: () => {
      isDead = true;
      resolve();
    },
  };
}

test("concurrent clients see only states of a simple model while storage and processes fail", async () => {
  await fc.assert(
    fc.asyncProperty(Scripts, Faults, Beginnings, async (scripts, chosen, beginnings) => {
      const tables: TestTable[] = [];
      const history = new History();
      for (const count of beginnings) {
        const table = await declareTable(at(replicas, 0).catalog);
        for (let version = 0; version < count; version += 1) commitExternally(table, `beginning ${version}`, history);
        tables.push(table);
      }
      faults = [...chosen];
      await Promise.all(scripts.map((script, client) => runClient(script, `client ${client}`, tables, history)));
      faults = [];
      for (const [index, table] of tables.entries()) await check(history, index, table);
    }),
    { seed, numRuns: runs },
  );
});

/** Writes the successor of the latest version in the table's folder under its final name, like Lance without a catalog. */
function commitExternally(table: TestTable, content: string, history: History): void {
  const folder = `/${pathOf(table)}/_versions`;
  mkdirSync(folder, { recursive: true });
  const versions = readdirSync(folder).map((name) => versionOfManifest(name) ?? 0);
  const file = `${folder}/${finalName(Math.max(0, ...versions) + 1)}`;
  try {
    writeFileSync(file, content, { flag: "wx" });
    history.external.set(file, content);
  } catch (error) {
    // Another writer committed first; a real writer would restart.
    if (!String(error).includes("EEXIST")) throw error;
  }
}

/** Calls a replica. @returns undefined if it was killed before its response. */
async function callOf(
  index: number,
  ...args: Parameters<TestCatalog["call"]>
): Promise<Awaited<ReturnType<TestCatalog["call"]>> | undefined> {
  const { catalog, killed } = at(replicas, index);
  return Promise.race([catalog.call(...args), killed.then(() => undefined)]);
}

async function runClient(script: readonly Action[], name: string, tables: readonly TestTable[], history: History) {
  /** The latest version that the client knows, and the request that it could repeat. */
  const known = tables.map(() => 0);
  const last: { readonly request: Readonly<Record<string, unknown>>; readonly committed: Committed }[] = [];

  const stage = (index: number, content: string) => {
    const version = (known[index] ?? 0) + 1;
    const manifest_path = stageManifest(at(tables, index), version, { content });
    return { index, content, version, request: { id: at(tables, index).id, version, manifest_path } };
  };
  /** Records the outcome. Without a response, and after a 503, the existence of the version is in doubt. */
  const settle = (staged: readonly ReturnType<typeof stage>[], status: number | undefined, askedAt: number) => {
    const answeredAt = history.now();
    for (const { index, content, version, request } of staged)
      if (status === 200) {
        const committed = { table: index, version, content, askedAt, answeredAt };
        history.committed.push(committed);
        known[index] = version;
        last[index] = { request, committed };
      } else {
        expect([409, 503, undefined]).toContain(status);
        if (status === 409) history.refused.push({ content, isOfBatch: staged.length > 1 });
        rmSync(`/${request.manifest_path}`, { force: true });
      }
  };
  const read = async (replica: number, index: number) => {
    const askedAt = history.now();
    const request = { id: at(tables, index).id, descending: true, limit: 1 };
    const answer = await callOf(replica, "listTableVersions", request);
    if (answer === undefined || answer.status === 503) return;
    const latest = (answer.body as { versions: { version: number }[] }).versions[0]?.version ?? 0;
    history.reads.push({ table: index, askedAt, answeredAt: history.now(), latest });
    known[index] = latest;
  };

  for (const [step, action] of script.entries()) {
    const content = `${name} step ${step}`;
    const { table, replica } = action;
    const askedAt = history.now();
    if (action.kind === "commit") {
      const staged = stage(table, content);
      const answer = await callOf(replica, "createTableVersion", staged.request);
      settle([staged], answer?.status, askedAt);
      if (answer?.status === 409) await read(replica, table);
    } else if (action.kind === "batch") {
      const staged = tables.map((_, index) => stage(index, `${content} table ${index}`));
      const entries = staged.map(({ request }) => request);
      settle(staged, (await callOf(replica, "batchCreateTableVersions", { entries }))?.status, askedAt);
    } else if (action.kind === "repeat") {
      const { request, committed } = last[table] ?? {};
      if (request === undefined || committed === undefined) continue;
      const wasDeleted = history.isDeleted(committed);
      const status = (await callOf(replica, "createTableVersion", request))?.status;
      // Deleted versions do not reappear. During the deletion, a retry may have either result.
      const refusals = history.mayBeDeleted(committed) ? [400, 409] : [];
      expect([...(wasDeleted ? [] : [200]), ...refusals, 503, undefined]).toContain(status);
    } else if (action.kind === "delete" || action.kind === "delete all") {
      const upTo = action.kind === "delete" ? action.upTo : Number.POSITIVE_INFINITY;
      const end_version = action.kind === "delete" ? action.upTo + 1 : -1;
      // The deletion covers all versions that it meets, whenever its response arrives.
      const deletion = { table, upTo, askedAt, answeredAt: Number.POSITIVE_INFINITY };
      history.deletions.push(deletion);
      const ranges = [{ start_version: 0, end_version }];
      const answer = await callOf(replica, "batchDeleteTableVersions", { id: at(tables, table).id, ranges });
      if (answer?.status === 200) Object.assign(deletion, { answeredAt: history.now() });
      if (action.kind === "delete all") known[table] = 0;
    } else if (action.kind === "external") commitExternally(at(tables, table), content, history);
    else if (action.kind === "kill") {
      const victim = at(replicas, replica);
      const next = await startReplica();
      // Another client may have killed the replica meanwhile.
      if (replicas[replica] !== victim) {
        await next.catalog.stop();
        continue;
      }
      victim.kill();
      replicas = replicas.with(replica, next);
    } else await read(replica, table);
  }
}

async function check(history: History, index: number, table: TestTable): Promise<void> {
  const { catalog } = at(replicas, 0);
  const list = async () => (await catalog.call("listTableVersions", { id: table.id })).body.versions;
  const wasEmptied = history.deletions.some((each) => each.table === index);
  const external = [...history.external].filter(([file]) => file.startsWith(`/${pathOf(table)}/`));
  // A batch whose process was killed occupies its numbers for some seconds.
  const versions = await vi.waitFor(
    async () => {
      const found = await list();
      const contents = found.map(({ manifest_path }) => readText(`/${manifest_path}`));
      if (!wasEmptied) for (const [, content] of external) expect(contents).toContain(content);
      return found;
    },
    { timeout: 60_000, interval: 100 },
  );
  const contents = new Map(versions.map(({ version, manifest_path }) => [version, readText(`/${manifest_path}`)]));

  const committed = history.committed.filter((each) => each.table === index);
  // No acknowledged version is lost, duplicated or found under another number.
  for (const each of committed.filter((one) => !history.mayBeDeleted(one)))
    expect([each.version, contents.get(each.version)]).toEqual([each.version, each.content]);
  expect(new Set(contents.values()).size).toBe(contents.size);
  // The numbers have no gaps.
  const listed = [...contents.keys()];
  expect(listed).toEqual(listed.map((_, position) => (listed[0] ?? 0) + position));
  // Deleted versions do not reappear.
  for (const each of committed.filter((one) => history.isDeleted(one)))
    expect([...contents.values()]).not.toContain(each.content);
  // No rejected version is listed, and thus no version of a rejected batch. Such a version remains if a writer outside
  // the catalog built the next one on it before the rollback.
  const isBuiltOn = (version: number) => history.external.has(`/${pathOf(table)}/_versions/${finalName(version + 1)}`);
  const notBuiltOn = [...contents].filter(([version]) => !isBuiltOn(version)).map(([, content]) => content);
  for (const { content, isOfBatch } of history.refused)
    expect(isOfBatch ? notBuiltOn : [...contents.values()]).not.toContain(content);
  // The numbers strictly increase: a request after a response has a higher number.
  const kept = committed.filter((one) => !history.mayBeDeleted(one)).sort((one, other) => one.version - other.version);
  for (const [position, earlier] of kept.entries())
    for (const later of kept.slice(position + 1)) expect(later.answeredAt).toBeGreaterThan(earlier.askedAt);
  // A reader sees all versions that were acknowledged before its request, unless they were deleted.
  for (const read of history.reads.filter((each) => each.table === index))
    for (const before of committed.filter(({ answeredAt }) => answeredAt < read.askedAt))
      if (!history.mayBeDeleted(before)) expect(read.latest).toBeGreaterThanOrEqual(before.version);
  // The manifests of writers outside the catalog never change.
  for (const [file, content] of history.external)
    expect([file, existsSync(file) && readText(file)]).toEqual([file, content]);

  // No manifest of an existing version stays staged.
  const staged = () =>
    (existsSync(`/${pathOf(table)}/_versions`) ? readdirSync(`/${pathOf(table)}/_versions`) : []).filter((name) => {
      const version = name.includes(".manifest-") ? versionOfManifest(name.replace(/-.*/, "")) : undefined;
      return version !== undefined && contents.get(version) === readText(`/${pathOf(table)}/_versions/${name}`);
    });
  await expect.poll(() => list().then(staged)).toEqual([]);
}

/** Wraps a store whose times are whole seconds, like those of S3. */
function inSeconds(store: ObjectStore): ObjectStore {
  const rounded = <Found extends StoredObject>(object: Found | undefined) =>
    object && { ...object, modifiedAtMillis: Math.floor(object.modifiedAtMillis / 1000) * 1000 };
  return {
    ...store,
    find: async (key) => rounded(await store.find(key)),
    persist: async (...args) => rounded(await store.persist(...args)),
  };
}

function unreliable(store: ObjectStore): ObjectStore {
  const around = <Arguments extends unknown[], Result>(work: (...args: Arguments) => Promise<Result>) => {
    return async (...args: Arguments): Promise<Result> => {
      const fault = faults.pop() ?? "none";
      const failed = new CatalogError("ServiceUnavailable", `the storage fails ${fault}`);
      if (fault === "before") throw failed;
      if (fault === "late") await new Promise(setImmediate);
      const result = await work(...args);
      if (fault === "after") throw failed;
      return result;
    };
  };
  return {
    ...store,
    find: around(store.find),
    persist: around(store.persist),
    copy: around(store.copy),
    syncFolder: around(store.syncFolder),
    delete: around(store.delete),
  };
}

function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new Error(`there is no item ${index}`);
  return item;
}
