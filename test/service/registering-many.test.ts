import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { finalName, useCatalog } from "../support/catalog.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const warehouse = temporaryFolder("tiltyard-registering-");
const catalog = useCatalog({ TILTYARD_WAREHOUSE: warehouse });
/** A number of versions that exceeds several database transactions. */
const versions = 4_000;

test("registering a table of many versions lets others declare theirs in between, and has all of them", async () => {
  const folder = join(warehouse, "many.lance", "_versions");
  mkdirSync(folder, { recursive: true });
  for (let version = 1; version <= versions; version += 1) writeFileSync(join(folder, finalName(version)), "manifest");
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
