import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mainBranch } from "@tiltyard/protocol";
import { expect, test } from "vitest";
import { filesOf, listManifests } from "../../service/commits/discover.ts";
import { adoptBelow } from "../../service/commits/record-adoption.ts";
import { requireTable } from "../../service/domain/require.ts";
import { createStorage } from "../../service/storage/storage.ts";
import { findBranch } from "../../service/store/branches.ts";
import { openStore } from "../../service/store/open.ts";
import type { Store } from "../../service/store/store.ts";
import { commit, declareTable, finalName, pathOf, startTestCatalog, useCatalog } from "../support/catalog.ts";
import { doDeferredWork } from "../support/deferred-work.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const warehouse = temporaryFolder("tiltyard-registering-");
const catalog = useCatalog({ TILTYARD_WAREHOUSE: warehouse, TILTYARD_DROP_RETENTION: "1h" });
/** A number of versions that exceeds several database transactions. */
const versions = 4_000;

function writeManifests(table: string, count: number): void {
  const folder = join(table, "_versions");
  mkdirSync(folder, { recursive: true });
  for (let version = 1; version <= count; version += 1) writeFileSync(join(folder, finalName(version)), "manifest");
}

/** Returns a store that waits for an interruption before each transaction. */
function interrupted(store: Store, interrupt: () => Promise<void>): Store {
  const write = store.write.bind(store);
  return Object.assign(store, {
    write: async (...args: Parameters<typeof write>) => {
      await interrupt();
      return write(...args);
    },
  });
}

test("registering a table of many versions lets others declare theirs in between, and has all of them", async () => {
  writeManifests(join(warehouse, "many.lance"), versions);
  let order = "";
  const registered = catalog.call("registerTable", { id: ["many"], location: "many.lance" }).then(({ status }) => {
    order += "registered ";
    return status;
  });
  for (let count = 0; !order.includes("registered"); count += 1) {
    expect((await catalog.call("declareTable", { id: [`declared_${count}`] })).status).toBe(200);
    order += "declared ";
  }
  expect(await registered).toBe(200);
  expect(order.startsWith("declared declared ")).toBe(true);

  const { versions: latest } = (await catalog.call("listTableVersions", { id: ["many"], descending: true, limit: 1 }))
    .body;
  expect(latest.map(({ version }) => version)).toEqual([versions]);
  const ranges = [{ start_version: 0, end_version: -1 }];
  expect((await catalog.call("batchDeleteTableVersions", { id: ["many"], ranges })).body.deleted_count).toBe(versions);
});

test("a table that is dropped before all its versions are adopted has them after its undrop", async () => {
  const { id, location } = await declareTable(catalog);
  writeManifests(`/${pathOf({ id, location })}`, 5_100);
  // One request adopts 5,000 versions, and a task the others.
  expect((await catalog.call("describeTable", { id, check_declared: true })).body.is_only_declared).toBe(false);
  await catalog.call("dropTable", { id });
  await doDeferredWork(catalog.database, { dropRetentionMs: 3_600_000 });
  const [dropped] = (await catalog.call("listDroppedTables", { id: id.slice(0, 1) })).body.dropped_tables;
  expect((await catalog.call("undropTable", { id, dropped_id: dropped?.dropped_id })).status).toBe(200);
  const first = async () => (await catalog.call("listTableVersions", { id, limit: 1 })).body.versions[0]?.version;
  await expect.poll(first).toBe(1);
});

test("a table that replaces another one during the deletion of many versions keeps its own", async () => {
  let interrupt = async () => {};
  const own = await startTestCatalog({}, { wrapStore: (store) => interrupted(store, () => interrupt()) });
  const { id, location } = await declareTable(own);
  writeManifests(`/${pathOf({ id, location })}`, 2_500);
  await own.call("listTableVersions", { id });
  let writes = 0;
  interrupt = async () => {
    writes += 1;
    if (writes !== 2) return;
    await own.call("dropTable", { id });
    const { location } = (await own.call("declareTable", { id })).body;
    await commit(own, { id, location }, 1);
  };
  const ranges = [{ start_version: 1, end_version: 2_500 }];
  const { error } = await own.call("batchDeleteTableVersions", { id, ranges });
  expect(error).toMatchObject({ status: 404, code: 4 });
  expect((await own.call("listTableVersions", { id })).body.versions).toHaveLength(1);
  await own.stop();
});

test("a table whose versions a request and the task of another process adopt at once has all of them", async () => {
  let interrupt = async () => {};
  const own = await startTestCatalog({}, { wrapStore: (store) => interrupted(store, () => interrupt()) });
  const { id, location } = await declareTable(own);
  writeManifests(`/${pathOf({ id, location })}`, 2_000);
  await using other = await openStore(own.database);
  interrupt = async () => {
    const at = { table: await requireTable(other.read, id), branch: mainBranch };
    const state = await findBranch(other.read, at);
    // The request begins with the latest versions.
    if (state === undefined) return;
    interrupt = async () => {};
    const files = await filesOf(createStorage({ s3ForcePathStyle: false }), at, state);
    await adoptBelow(other, files, await listManifests(files), 1);
  };
  const { versions: listed } = (await own.call("listTableVersions", { id, limit: 1 })).body;
  expect(listed.map(({ version }) => version)).toEqual([1]);
  const ranges = [{ start_version: 0, end_version: -1 }];
  expect((await own.call("batchDeleteTableVersions", { id, ranges })).body.deleted_count).toBe(2_000);
  await own.stop();
});
