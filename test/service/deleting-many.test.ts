import { beforeAll, expect, test } from "vitest";
import { openStore } from "../../service/store/open.ts";
import { findTable } from "../../service/store/tables.ts";
import { insertVersion } from "../../service/store/versions.ts";
import { declareTable, type TestTable, useCatalog } from "../support/catalog.ts";
import { versionRecord } from "../support/version-record.ts";

const catalog = useCatalog();
/** More than one database transaction deletes. */
const versions = 10_000;

let table: TestTable;
beforeAll(async () => {
  table = await declareTable(catalog);
  await using store = await openStore(catalog.database);
  await store.write(async (session) => {
    const tableId = (await findTable(session, table.id))?.id ?? 0;
    for (let version = 1; version <= versions; version += 1)
      await insertVersion(session, versionRecord(tableId, version));
  });
});

test("a deletion of many versions lets others in between, counts them all, and does what a small one does", async () => {
  const latest = async () => {
    const { body } = await catalog.call("listTableVersions", { id: table.id, descending: true, limit: 1 });
    return body.versions.map(({ version }) => version);
  };
  const remove = async (ranges: readonly (readonly [number, number])[]) => {
    const asked = ranges.map(([start_version, end_version]) => ({ start_version, end_version }));
    return (await catalog.call("batchDeleteTableVersions", { id: table.id, ranges: asked })).body;
  };
  let order = "";
  const first = remove([
    [1, 9_500],
    [100, 200],
    [9_501, 9_502],
  ]).then((body) => {
    order += "deleted ";
    return body;
  });
  const other = catalog.call("createNamespace", { id: ["meanwhile"] }).then(() => {
    order += "created ";
  });
  expect((await first).deleted_count).toBe(9_500);
  await other;
  expect(order).toBe("created deleted ");
  expect(await latest()).toEqual([versions]);
  const transaction = (await first).transaction_id ?? "";
  expect((await catalog.call("describeTransaction", { id: transaction.split("$") })).body.status).toBe("Succeeded");

  // All of the branch: its numbering begins anew.
  expect((await remove([[0, -1]])).deleted_count).toBe(500);
  expect(await latest()).toEqual([]);
});
