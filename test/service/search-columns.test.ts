import { Field, Int32, Struct, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { describe, expect, test } from "vitest";
import { openStore } from "../../service/store/open.ts";
import { startTestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";
import { executeSql } from "../support/database.ts";
import { untilRecorded, useDeferredWork } from "../support/deferred-work.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog({ TILTYARD_DROP_RETENTION: "1h" });
const doItsWork = useDeferredWork(catalog);

/** Records the columns of all tables. A version that is not recorded as placed has none yet. */
async function record(): Promise<void> {
  await using store = await openStore(catalog.database);
  await untilRecorded(store);
  await doItsWork();
}

async function search(within: readonly string[], name: string, more: object = {}): Promise<string[]> {
  const { columns } = (await catalog.call("searchNamespace", { id: within, name, ...more })).body;
  return columns.map(({ table, column }) => `${table.slice(1).join("$")} ${column}`);
}

describe("SearchNamespace", () => {
  test("finds columns and fields in them, the best match first", async () => {
    const namespace = uniqueName("ns");
    await catalog.call("createNamespace", { id: [namespace] });
    const meta = new Struct([new Field("Year", new Int32(), true), new Field("my_year", new Utf8(), true)]);
    const columns = {
      year_made: vectorFromArray([1], new Int32()),
      year: vectorFromArray([1], new Int32()),
      a_b: vectorFromArray([1], new Int32()),
      meta: vectorFromArray([{ Year: 1, my_year: "x" }], meta),
    };
    const body = tableToIPC(new Table(columns), "stream");
    for (const name of ["films", "clips"]) await catalog.call("createTable", { id: [namespace, name] }, { body });
    await record();
    const within = [namespace];
    const best = ["clips year", "films year", "clips year_made", "films year_made"];
    expect((await search(within, "YEAR")).slice(0, 4)).toEqual(best);
    expect((await search(within, "year")).slice(4).toSorted()).toEqual(
      ["clips", "films"].flatMap((name) => [`${name} meta.Year`, `${name} meta.my_year`]),
    );
    expect(await search(within, "year", { limit: 3 })).toEqual(best.slice(0, 3));
    // A table, the delimiter and the beginning of a column.
    expect(await search(within, "ilms$year_")).toEqual(["films year_made"]);
    expect(await search([], `${namespace}$clips$a_`)).toEqual(["clips a_b"]);
    expect(await search(within, "films$made")).toEqual([]);
    // Wildcards of SQL are ordinary characters.
    expect(await search(within, "_b")).toEqual(["clips a_b", "films a_b"]);
    expect(await search(within, "a%b")).toEqual([]);
  });

  test("finds the columns of a table next to one with a column name that PostgreSQL cannot store", async () => {
    const namespace = uniqueName("ns");
    await catalog.call("createNamespace", { id: [namespace] });
    for (const [name, column] of Object.entries({ odd: "nul\0name", films: "year" })) {
      const body = tableToIPC(new Table({ [column]: vectorFromArray([1], new Int32()) }), "stream");
      expect((await catalog.call("createTable", { id: [namespace, name] }, { body })).status).toBe(200);
    }
    await record();
    expect(await search([namespace], "year")).toEqual(["films year"]);
    expect(await search([namespace], "name")).toEqual(["odd nul\ufffdname"]);
  });

  test("finds the columns of the latest version of main, after each kind of change", async () => {
    const id = await createFilms(catalog);
    const within = id.slice(0, 1);
    const found = async (name: string) => {
      await record();
      return search(within, name);
    };
    await catalog.call("alterTableAddColumns", { id, new_columns: [{ name: "twice", expression: "id * 2" }] });
    expect(await found("twice")).toEqual(["films twice"]);
    const alterations = [{ path: "twice", rename: "double" }];
    await catalog.call("alterTableAlterColumns", { id, alterations });
    expect([await found("twice"), await found("double")]).toEqual([[], ["films double"]]);
    await catalog.call("alterTableDropColumns", { id, columns: ["double"] });
    expect(await found("double")).toEqual([]);
    // Without its record, the previous version is the latest.
    const ranges = [{ start_version: 4, end_version: 5 }];
    expect((await catalog.call("batchDeleteTableVersions", { id, ranges })).body.deleted_count).toBe(1);
    expect(await found("double")).toEqual(["films double"]);

    await catalog.call("renameTable", { id, new_table_name: "movies" });
    expect(await found("double")).toEqual(["movies double"]);
    const movies = [...within, "movies"];
    await catalog.call("dropTable", { id: movies });
    expect(await search(within, "double")).toEqual([]);
    const { dropped_tables } = (await catalog.call("listDroppedTables", { id: within })).body;
    await catalog.call("undropTable", { id: movies, dropped_id: dropped_tables[0]?.dropped_id });
    expect(await search(within, "double")).toEqual(["movies double"]);
    await catalog.call("batchDeleteTableVersions", { id: movies, ranges: [{ start_version: 0, end_version: -1 }] });
    expect(await found("double")).toEqual([]);
  });

  test("finds the columns of a table that another writer filled, as soon as the catalog knows its versions", async () => {
    const id = await createFilms(catalog);
    const { location = "" } = (await catalog.call("describeTable", { id })).body;
    await catalog.call("deregisterTable", { id });
    const registered = [...id.slice(0, 1), "registered"];
    await catalog.call("registerTable", { id: registered, location });
    await record();
    expect(await search(id.slice(0, 1), "title")).toEqual(["registered title"]);
  });

  test("finds only columns of tables that the caller may read", async () => {
    const [readable, other] = [await createFilms(catalog), await createFilms(catalog)];
    await record();
    const key = await catalog.keyFor(uniqueName("reader"), { [readable[0] ?? ""]: "reader" });
    const { body } = await catalog.call("searchNamespace", { id: readable.slice(0, 1), name: "title" }, { key });
    expect(body.columns).toEqual([{ table: readable, column: "title" }]);
    for (const id of [[], other.slice(0, 1)])
      expect((await catalog.call("searchNamespace", { id, name: "title" }, { key })).status).toBe(403);
  });
});

test("finds at most 200 of the columns with a name", async () => {
  const own = await startTestCatalog();
  const names = Array.from({ length: 20 }, (_, n) => `column_with_number_${n}\u001f`).join("");
  await executeSql(
    own.database,
    `insert into tables (namespace, name, location, properties, created_at_millis)
       with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1000)
       select '', 't' || n, 'file:///many/' || n, '{}', 1 from numbers;
     insert into table_columns select id, '\u001f${names}only_' || name || '\u001f' from tables;`,
  );
  const found = async (name: string) => (await own.call("searchNamespace", { id: [], name })).body.columns;
  expect(await found("only_t777")).toEqual([{ table: ["t777"], column: "only_t777" }]);
  expect(await found("number_7")).toHaveLength(200);
  expect(await found("nowhere")).toEqual([]);
  await own.stop();
});

test("answers others between the steps of a search for repetitive names", async () => {
  const own = await startTestCatalog();
  await executeSql(
    own.database,
    `insert into tables (namespace, name, location, properties, created_at_millis)
       with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 2000)
       select '', 't' || n, 'file:///many/' || n, '{}', 1 from numbers;
     insert into table_columns select id, '\u001f${"a".repeat(16_000)}\u001f' from tables;`,
  );
  let isRunning = true;
  const searched = own.call("searchNamespace", { id: [], name: `${"a".repeat(63)}b` }).finally(() => {
    isRunning = false;
  });
  let answered = 0;
  for (; isRunning; answered += 1) await own.call("namespaceExists", { id: [] });
  expect((await searched).body).toEqual({ namespaces: [], tables: [], columns: [] });
  expect(answered).toBeGreaterThan(3);
  await own.stop();
});
