import { join } from "node:path";
import Database from "better-sqlite3";
import type { CompiledQuery, KyselyPlugin } from "kysely";
import { expect, test } from "vitest";
import { parseLocation } from "../../service/storage/location.ts";
import { countOpenJobs } from "../../service/store/jobs.ts";
import { findReservedLocation } from "../../service/store/reserved-locations.ts";
import { search } from "../../service/store/search.ts";
import { openSqliteStore } from "../../service/store/sqlite.ts";
import type { Session } from "../../service/store/store.ts";
import { isLocationTaken, listAllTables, listTables } from "../../service/store/tables.ts";
import { listJobs, listTransactions } from "../../service/store/transaction-lists.ts";
import { listUnfinishedVersions } from "../../service/store/unfinished-versions.ts";
import { deleteSomeVersions, latestVersion } from "../../service/store/versions.ts";
import { executeSql } from "../support/database.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const page = { after: undefined, limit: 10, ascending: false };
const tables = { limit: 10, includeDeclared: true };
/** More tables than one step of a search examines. */
const manyTables = `
  insert into namespaces (path, parent, name, properties, created_at_millis) values ('many', '', 'many', '{}', 1);
  insert into tables (namespace, name, location, properties, created_at_millis)
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 200)
    select 'many', 't' || n, 'file:///many/' || n, '{}', 1 from numbers`;
const searches: readonly [name: string, index: string, find: (session: Session) => Promise<unknown>][] = [
  ["the latest version", "PRIMARY KEY", (session) => latestVersion(session, { table: { id: 1 }, branch: "main" })],
  ["unfinished versions", "table_versions_unfinished", (session) => listUnfinishedVersions(session, "a transaction")],
  ["versions of a deleted table", "PRIMARY KEY", (session) => deleteSomeVersions(session, 1, 10)],
  ["open jobs", "jobs_open", (session) => listJobs(session, { within: [], statuses: ["Queued"] }, page)],
  ["open jobs of a principal", "jobs_open_of_principal", (session) => countOpenJobs(session, { principal: "ann" }, 10)],
  ["open jobs in a namespace", "jobs_open_of_namespace", (session) => countOpenJobs(session, { namespace: ["a"] }, 10)],
  [
    "transactions of a table",
    "jobs_of_one",
    (session) => listTransactions(session, { within: [], table: ["t"] }, page),
  ],
  ["overlapping locations", "(location=?)", (session) => isLocationTaken(session, parseLocation("file:///a/b"))],
  ["reserved locations", "(location=?)", (session) => findReservedLocation(session, parseLocation("file:///a/b"))],
  ["tables of a namespace", "(namespace=? AND name>?)", (session) => listTables(session, ["a"], "t", tables)],
  ["tables after a name", "(namespace,name)>", (session) => listAllTables(session, ["a", "t"], tables)],
  [
    "the tables of one step of a search",
    "(namespace,name)>(?,?) AND (namespace,name)<(?,?)",
    (session) => search(session, { within: ["many"], parts: ["t"], limit: 10 }),
  ],
];

test.each(searches)("SQLite finds %s by an index and scans no table", async (_, index, find) => {
  const file = join(temporaryFolder("tiltyard-indices-"), "catalog.sqlite");
  await using store = await openSqliteStore(file);
  await executeSql({ kind: "sqlite", file }, manyTables);
  using reader = closing(new Database(file, { readonly: true }));
  const queries: CompiledQuery[] = [];
  await store.write((session) => {
    const plugin: KyselyPlugin = {
      transformQuery: ({ node, queryId }) => {
        queries.push(session.db.getExecutor().compileQuery(node, queryId));
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    return find({ ...session, db: session.db.withPlugin(plugin) });
  });
  const plans = queries.flatMap(({ sql, parameters }) =>
    reader.database
      .prepare<unknown[], { detail: string }>(`explain query plan ${sql}`)
      .all(...parameters.map((each) => (typeof each === "object" ? null : each))),
  );
  const steps = plans.map(({ detail }) => detail);
  expect(steps.join("\n")).toContain(index);
  // `examined` is a subquery, which searches an index.
  expect(steps.filter((step) => /^SCAN (?!examined)/.test(step))).toEqual([]);
});

function closing(database: Database.Database): { readonly database: Database.Database } & Disposable {
  return { database, [Symbol.dispose]: () => void database.close() };
}
