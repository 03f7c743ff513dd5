import { beforeAll, expect, test } from "vitest";
import { openStore } from "../../service/store/open.ts";
import { findTable } from "../../service/store/tables.ts";
import { insertVersion } from "../../service/store/versions.ts";
import { declareTable, type TestTable, useCatalog } from "../support/catalog.ts";
import { executeSql } from "../support/database.ts";
import { versionRecord } from "../support/version-record.ts";

const catalog = useCatalog();
/** A number of versions that exceeds one database transaction. */
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

test("a deletion of many versions runs in steps, lets other requests in between, and counts all records", async () => {
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

  // The deletion of the whole branch restarts its numbering.
  expect((await remove([[0, -1]])).deleted_count).toBe(500);
  expect(await latest()).toEqual([]);
});

test("a cascading drop of 40,000 tables lets others in between, and a protected table stops it before it begins", async () => {
  for (const id of [["large"], ["large", "below"]]) await catalog.call("createNamespace", { id });
  await executeSql(
    catalog.database,
    `insert into tables (namespace, name, location, properties, created_at_millis)
     with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000)
     select case when i % 2 = 0 then 'large' else 'large\u001fbelow' end, 't' || i, 'file:///large/' || i, '{}', 1 from n`,
  );
  const drop = { id: ["large"], behavior: "Cascade" };
  await catalog.call("declareTable", { id: ["large", "below", "kept"] });
  await catalog.call("protectTable", { id: ["large", "below", "kept"] });
  expect((await catalog.call("dropNamespace", drop)).error.detail).toContain("is protected");
  expect((await catalog.call("tableExists", { id: ["large", "t40000"] })).status).toBe(200);
  await catalog.call("unprotectTable", { id: ["large", "below", "kept"] });

  let isDropping = true;
  const dropped = catalog.call("dropNamespace", drop).finally(() => {
    isDropping = false;
  });
  let meanwhile = 0;
  for (; isDropping; meanwhile += 1) await catalog.call("createNamespace", { id: [`beside${meanwhile}`] });
  expect((await dropped).status).toBe(200);
  expect(meanwhile).toBeGreaterThan(20);
  expect((await catalog.call("namespaceExists", { id: ["large"] })).status).toBe(404);
  const { transaction_id } = (await dropped).body;
  expect((await catalog.call("describeTransaction", { id: transaction_id ?? [] })).body.status).toBe("Succeeded");
});
