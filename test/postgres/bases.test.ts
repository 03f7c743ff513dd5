import { expect, test } from "vitest";
import type { Store } from "../../service/store/store.ts";
import { manifestWith } from "../support/bases.ts";
import { stageManifest, startTestCatalog, type TestTable } from "../support/catalog.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test.each([
  ["while it is dropped", false],
  ["after it was dropped", true],
])("a base that is claimed for a table %s is free after its purge", async (_, isDroppedFirst) => {
  const allowed = temporaryFolder("tiltyard-bases-");
  const base = `${allowed}/base`;
  let interleave: (() => Promise<unknown>) | undefined;
  const once = async () => {
    const work = interleave;
    interleave = undefined;
    await work?.();
  };
  const wrapStore = (store: Store): Store => {
    const write = store.write.bind(store);
    return Object.assign(store, {
      write: async (...[work, options]: Parameters<typeof write>) => {
        if (isDroppedFirst && options?.locking === "tables") await once();
        return write(async (session) => {
          // The transaction sees the database as of this query.
          await session.db.selectFrom("tables").select("id").execute();
          if (!isDroppedFirst) await once();
          return work(session);
        }, options);
      },
    });
  };
  const catalog = await startTestCatalog({ TILTYARD_ALLOWED_LOCATIONS: allowed }, { wrapStore });
  const table: TestTable = { id: ["t"], location: (await catalog.call("declareTable", { id: ["t"] })).body.location };
  const manifest_path = stageManifest(table, 1, { content: manifestWith(base) });
  const commit = () =>
    catalog.call("createTableVersion", { id: table.id, version: 1, manifest_path, naming_scheme: "V2" });
  const drop = () => catalog.call("dropTable", { id: table.id });
  if (isDroppedFirst) {
    interleave = drop;
    expect((await commit()).status).toBe(404);
  } else {
    interleave = commit;
    expect((await drop()).status).toBe(200);
  }
  await expect
    .poll(async () => (await catalog.call("declareTable", { id: ["other"], location: base })).status)
    .toBe(200);
  await catalog.stop();
});
