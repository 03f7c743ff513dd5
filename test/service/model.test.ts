import { readdirSync, rmSync } from "node:fs";
import { CatalogError } from "@tiltyard/protocol";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { versionOfManifest } from "../../service/commits/manifest.ts";
import type { ObjectStore } from "../../service/storage/object-store.ts";
import {
  declareTable,
  pathOf,
  readText,
  stageManifest,
  startTestCatalog,
  type TestCatalog,
  type TestTable,
} from "../support/catalog.ts";

/** What fast-check chooses comes from this number: set it to run again what failed. */
const seed = Number(process.env.TILTYARD_MODEL_SEED ?? Math.floor(Math.random() * 2 ** 31));
const runs = Number(process.env.TILTYARD_MODEL_RUNS ?? 20);
const tableCount = 2;

/** What happens to a call of the storage; `after` loses the answer of what was done. */
type Fault = "none" | "before" | "after" | "late";

const tableIndex = fc.nat({ max: tableCount - 1 });
const Action = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("commit" as const), table: tableIndex }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("repeat" as const), table: tableIndex }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("batch" as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("read" as const), table: tableIndex }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("delete" as const),
      table: tableIndex,
      upTo: fc.integer({ min: 1, max: 4 }),
    }),
  },
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

/** A version that a client was told to have committed. */
interface Committed {
  readonly table: number;
  readonly version: number;
  readonly content: string;
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** All that clients were told. The order of events is counted, not timed. */
class History {
  readonly committed: Committed[] = [];
  /** The contents of manifests that were refused. */
  readonly refused: string[] = [];
  readonly reads: { readonly table: number; readonly askedAt: number; readonly latest: number }[] = [];
  readonly deleted: number[] = Array.from({ length: tableCount }, () => 0);
  /** Versions up to this one may be deleted. */
  readonly deletedUpTo: number[] = Array.from({ length: tableCount }, () => 0);
  #events = 0;

  now(): number {
    this.#events += 1;
    return this.#events;
  }
}

let faults: Fault[] = [];
let catalog: TestCatalog;
beforeAll(async () => {
  process.stdout.write(`model: TILTYARD_MODEL_SEED=${seed}\n`);
  catalog = await startTestCatalog(
    {},
    { wrapStorage: (storage) => ({ at: async (location) => unreliable(await storage.at(location)) }) },
  );
});
afterAll(() => catalog?.stop());

test("clients at work at once see what a simple model allows, while the storage fails now and then", async () => {
  await fc.assert(
    fc.asyncProperty(Scripts, Faults, async (scripts, chosen) => {
      const tables: TestTable[] = [];
      for (let index = 0; index < tableCount; index += 1) tables.push(await declareTable(catalog));
      faults = [...chosen];
      const history = new History();
      await Promise.all(scripts.map((script, client) => runClient(script, `client ${client}`, tables, history)));
      faults = [];
      for (const [index, table] of tables.entries()) await check(history, index, table);
    }),
    { seed, numRuns: runs },
  );
}, 300_000);

async function runClient(script: readonly Action[], name: string, tables: readonly TestTable[], history: History) {
  /** The latest version that the client knows of, and the request that it could send again. */
  const known = tables.map(() => 0);
  const last: ({ readonly request: Readonly<Record<string, unknown>>; readonly version: number } | undefined)[] =
    tables.map(() => undefined);

  const stage = (index: number, content: string) => {
    const version = (known[index] ?? 0) + 1;
    const manifest_path = stageManifest(at(tables, index), version, { content });
    return { index, content, version, request: { id: at(tables, index).id, version, manifest_path } };
  };
  const settle = (staged: readonly ReturnType<typeof stage>[], status: number, askedAt: number) => {
    for (const { index, content, version, request } of staged)
      if (status === 200) {
        history.committed.push({ table: index, version, content, askedAt, answeredAt: history.now() });
        known[index] = version;
        last[index] = { request, version };
      } else {
        expect([409, 503]).toContain(status);
        history.refused.push(content);
        rmSync(`/${request.manifest_path}`, { force: true });
      }
  };
  const read = async (index: number) => {
    const askedAt = history.now();
    const request = { id: at(tables, index).id, descending: true, limit: 1 };
    const answer = await catalog.call("listTableVersions", request);
    if (answer.status === 503) return;
    const latest = answer.body.versions[0]?.version ?? 0;
    history.reads.push({ table: index, askedAt, latest });
    known[index] = latest;
  };

  for (const [step, action] of script.entries()) {
    const content = `${name} step ${step}`;
    if (action.kind === "commit") {
      const staged = stage(action.table, content);
      const askedAt = history.now();
      const { status } = await catalog.call("createTableVersion", staged.request);
      settle([staged], status, askedAt);
      if (status === 409) await read(action.table);
    } else if (action.kind === "batch") {
      const staged = tables.map((_, index) => stage(index, `${content} table ${index}`));
      const askedAt = history.now();
      const { status } = await catalog.call("batchCreateTableVersions", {
        entries: staged.map(({ request }) => request),
      });
      settle(staged, status, askedAt);
    } else if (action.kind === "repeat") {
      const { request, version } = last[action.table] ?? {};
      if (request === undefined || version === undefined) continue;
      const { status } = await catalog.call("createTableVersion", request);
      // Unless its record is deleted by now: then its number is never taken again.
      const isDeleted = version <= (history.deletedUpTo[action.table] ?? 0);
      expect(isDeleted ? [200, 400, 409, 503] : [200, 503]).toContain(status);
    } else if (action.kind === "delete") {
      history.deletedUpTo[action.table] = Math.max(history.deletedUpTo[action.table] ?? 0, action.upTo);
      const ranges = [{ start_version: 0, end_version: action.upTo + 1 }];
      const { body } = await catalog.call("batchDeleteTableVersions", { id: at(tables, action.table).id, ranges });
      history.deleted[action.table] = (history.deleted[action.table] ?? 0) + body.deleted_count;
    } else await read(action.table);
  }
}

async function check(history: History, index: number, table: TestTable): Promise<void> {
  const committed = history.committed
    .filter((each) => each.table === index)
    .sort((one, other) => one.version - other.version);
  // No lost update: every version is one client's, and none is left out.
  expect(committed.map(({ version }) => version)).toEqual(committed.map((_, position) => position + 1));
  // Strictly increasing: what was asked for after an answer has a higher number.
  for (const [position, later] of committed.entries())
    for (const earlier of committed.slice(position + 1)) expect(earlier.answeredAt).toBeGreaterThan(later.askedAt);
  // A reader sees what was acknowledged before it asked, unless that was deleted.
  for (const read of history.reads.filter((each) => each.table === index)) {
    const before = committed.filter(({ answeredAt }) => answeredAt < read.askedAt).map(({ version }) => version);
    const latest = Math.max(0, ...before);
    if (latest > (history.deletedUpTo[index] ?? 0)) expect(read.latest).toBeGreaterThanOrEqual(latest);
  }
  const { versions } = (await catalog.call("listTableVersions", { id: table.id })).body;
  const contents = versions.map(({ manifest_path }) => readText(`/${manifest_path}`));
  // What is listed is what was committed under that number, and so nothing of a batch that was refused.
  expect(contents).toEqual(versions.map(({ version }) => committed[version - 1]?.content));
  for (const content of history.refused) expect(contents).not.toContain(content);
  expect(versions.length + (history.deleted[index] ?? 0)).toBe(committed.length);
  for (const { version } of committed)
    if (version > (history.deletedUpTo[index] ?? 0)) expect(versions.map((each) => each.version)).toContain(version);
  // A record that is deleted before its manifest got its final name leaves the staged one behind.
  const staged = () =>
    (committed.length === 0 ? [] : readdirSync(`/${pathOf(table)}/_versions`)).filter(
      (name) =>
        name.includes(".manifest-") &&
        (versionOfManifest(name.replace(/-.*/, "")) ?? 0) > (history.deletedUpTo[index] ?? 0),
    );
  const stagedAfterList = () => catalog.call("listTableVersions", { id: table.id }).then(staged);
  await vi.waitFor(async () => expect(await stagedAfterList()).toEqual([]), { timeout: 10_000 });
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
    settle: around(store.settle),
    delete: around(store.delete),
  };
}

function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new Error(`there is no item ${index}`);
  return item;
}
