import { randomUUIDv7 } from "node:crypto";
import type { AnyContract } from "@tiltyard/protocol";
import { contracts, managementContracts } from "@tiltyard/protocol";
import type { KyselyPlugin } from "kysely";
import { describe, expect, test } from "vitest";
import { insertAuditRecord } from "../../service/store/audit.ts";
import { openStore } from "../../service/store/open.ts";
import type { Store } from "../../service/store/store.ts";
import { type Answer, commit, declareTable, startTestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";
import { executeSql, readWhole } from "../support/database.ts";
import { arrowStream, createFilms, films } from "../support/rows.ts";

const catalog = useCatalog({ TILTYARD_DROP_RETENTION: "1h" });

/** Lists transactions page by page. */
async function transactions(request: Readonly<Record<string, unknown>>, key = catalog.adminKey) {
  const found = [];
  for (let page_token: string | undefined = ""; page_token !== undefined; ) {
    const { body }: Answer<"listTransactions"> = await catalog.call(
      "listTransactions",
      { ...request, page_token },
      { key },
    );
    found.push(...body.transactions);
    page_token = body.page_token;
  }
  return found;
}

/** Returns the id of a transaction at a time. Within a millisecond, the order is arbitrary. */
function idAt(millis: number): string {
  const digits = millis.toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}${randomUUIDv7().slice(13)}`;
}

const operationsOf = (found: Awaited<ReturnType<typeof transactions>>) => found.map(({ operation }) => operation);

describe("a caller", () => {
  test("sees its name and its roles, even without roles", async () => {
    const key = await catalog.keyFor("curious", { prod: "reader", prod$own: "admin" });
    const { body } = await catalog.call("describeCaller", {}, { key });
    expect(body.principal).toBe("curious");
    expect(body.grants.toSorted((a, b) => a.namespace.length - b.namespace.length)).toEqual([
      { namespace: ["prod"], role: "reader" },
      { namespace: ["prod", "own"], role: "admin" },
    ]);
    const newcomer = await catalog.keyFor("newcomer", {});
    expect((await catalog.call("describeCaller", {}, { key: newcomer })).body.grants).toEqual([]);
  });
});

describe("an API key", () => {
  test("is shown once, works until it is revoked, and is nowhere in the catalog", async () => {
    const grant = { namespace: [], role: "reader" };
    const made = (await catalog.call("createApiKey", { principal: "ada", grant })).body;
    expect((await catalog.call("describeCaller", {}, { key: made.key })).body).toEqual({
      principal: "ada",
      grants: [grant],
    });
    const listed = (await catalog.call("listApiKeys", { principal: "ada" })).body.api_keys;
    expect(listed).toEqual([
      { api_key_id: made.api_key_id, principal: "ada", created_at_millis: expect.closeTo(Date.now(), -5) },
    ]);
    const audit = await transactions({ id: [] });
    for (const text of [JSON.stringify([listed, audit]), await readWhole(catalog.database)])
      expect(text).not.toContain(made.key);

    expect((await catalog.call("revokeApiKey", { api_key_id: made.api_key_id })).status).toBe(200);
    expect((await catalog.call("describeCaller", {}, { key: made.key })).status).toBe(401);
    const again = await catalog.call("revokeApiKey", { api_key_id: made.api_key_id });
    expect(again.error).toMatchObject({ status: 404, detail: expect.stringMatching(/^the key .* does not exist/) });
  });

  test("is created together with its role or not at all", async () => {
    const grant = { namespace: ["a", ""], role: "reader" };
    expect((await catalog.call("createApiKey", { principal: "half", grant })).error.detail).toContain("empty part");
    expect((await catalog.call("listApiKeys", { principal: "half" })).body.api_keys).toEqual([]);
  });

  test.each(["", "a\nb", "x".repeat(257)])("is refused to a principal that cannot be one: %j", async (principal) => {
    expect((await catalog.call("createApiKey", { principal })).error).toMatchObject({ status: 400, code: 13 });
    expect((await catalog.call("putGrant", { id: [], principal, role: "reader" })).status).toBe(400);
  });

  test("is listed in pages, the oldest first", async () => {
    const principal = uniqueName("pager");
    const ids = [];
    for (let n = 0; n < 5; n++) ids.push((await catalog.call("createApiKey", { principal })).body.api_key_id);
    const first = (await catalog.call("listApiKeys", { principal, limit: 3 })).body;
    const second = (await catalog.call("listApiKeys", { principal, limit: 3, page_token: first.page_token })).body;
    expect([first.api_keys.length, second.api_keys.length, second.page_token]).toEqual([3, 2, undefined]);
    expect([...first.api_keys, ...second.api_keys].map((key) => key.api_key_id).toSorted()).toEqual(ids.toSorted());
  });
});

describe("a role", () => {
  test("is granted, changed, listed and revoked, with effect on the next request", async () => {
    const key = await catalog.keyFor("grace", {});
    const namespace = uniqueName("team");
    const may = async () => (await catalog.call("createNamespace", { id: [namespace, "x"] }, { key })).status;
    await catalog.call("createNamespace", { id: [namespace] });
    expect(await may()).toBe(403);
    await catalog.call("putGrant", { id: [namespace], principal: "grace", role: "reader" });
    expect(await may()).toBe(403);
    await catalog.call("putGrant", { id: [namespace], principal: "grace", role: "writer" });
    expect(await may()).toBe(200);
    const { grants } = (await catalog.call("listGrants", { id: [], principal: "grace" })).body;
    expect(grants).toEqual([{ principal: "grace", namespace: [namespace], role: "writer" }]);
    await catalog.call("revokeGrant", { id: [namespace], principal: "grace" });
    expect(await may()).toBe(403);
    const again = await catalog.call("revokeGrant", { id: [namespace], principal: "grace" });
    expect(again.error).toMatchObject({ status: 404, detail: expect.stringContaining(`grace has no role`) });
  });

  test("lets an admin manage the roles of its namespace, and of no other", async () => {
    const key = await catalog.keyFor("lead", { dept: "admin" });
    const put = async (id: string[], role = "reader") =>
      (await catalog.call("putGrant", { id, principal: "member", role }, { key })).status;
    expect([await put(["dept"]), await put(["dept", "sub"], "admin")]).toEqual([200, 200]);
    expect([await put([]), await put(["deptx"])]).toEqual([403, 403]);
    await catalog.call("putGrant", { id: ["deptx"], principal: "member", role: "reader" });
    const { grants } = (await catalog.call("listGrants", { id: ["dept"], principal: "member" }, { key })).body;
    expect(grants.map(({ namespace }) => namespace)).toEqual([["dept"], ["dept", "sub"]]);
    expect((await catalog.call("listGrants", { id: [] }, { key })).status).toBe(403);
    expect((await catalog.call("createApiKey", { principal: "member" }, { key })).status).toBe(403);
  });

  test("is listed in pages, by principal and namespace, whatever these are called", async () => {
    const namespaces = [["p"], ["p", "a$b"], ["p", "a", "b"], ["p", "\u{10ffff}"]];
    for (const id of namespaces)
      for (const principal of ["x", "y"])
        await catalog.call("putGrant", { id, principal, role: "reader" }, { delimiter: "::" });
    const found = [];
    for (let page_token: string | undefined = ""; page_token !== undefined; ) {
      const { body }: Answer<"listGrants"> = await catalog.call("listGrants", { id: ["p"], limit: 3, page_token });
      found.push(...body.grants.map(({ principal, namespace }) => [principal, ...namespace].join("/")));
      page_token = body.page_token;
    }
    const expected = ["x", "y"].flatMap((principal) => namespaces.map((id) => [principal, ...id].join("/")));
    expect(found.toSorted()).toEqual(expected.toSorted());
    expect(found.slice(0, 4).every((each) => each.startsWith("x/"))).toBe(true);
    expect((await catalog.call("listGrants", { id: [], limit: 1000 })).body.grants.length).toBeGreaterThanOrEqual(8);
  });
});

describe("principals", () => {
  test("are all that have a key or a role, with how many of each", async () => {
    await catalog.call("createApiKey", { principal: "only-key" });
    await catalog.call("putGrant", { id: ["somewhere"], principal: "only-role", role: "reader" });
    const { principals } = (await catalog.call("listPrincipals")).body;
    expect(principals).toContainEqual({ principal: "only-key", api_keys: 1, grants: 0 });
    expect(principals).toContainEqual({ principal: "only-role", api_keys: 0, grants: 1 });
    const names = principals.map(({ principal }) => principal);
    expect(names).toEqual(names.toSorted());
    expect(new Set(names).size).toBe(names.length);
    const page = (await catalog.call("listPrincipals", { limit: 1 })).body;
    const next = (await catalog.call("listPrincipals", { limit: 1, page_token: page.page_token })).body;
    expect([page, next].map(({ principals: [each] }) => each?.principal)).toEqual(names.slice(0, 2));
  });
});

describe("transactions", () => {
  test("name the principal, the operation and its objects, latest first, also those of management", async () => {
    const key = await catalog.keyFor("auditor", { $: "admin" });
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    await catalog.call("putGrant", { id: ["films"], principal: "bob", role: "reader" }, { key });
    const made = (await catalog.call("createApiKey", { principal: "bob" }, { key })).body;
    await catalog.call("revokeApiKey", { api_key_id: made.api_key_id }, { key });
    const mine = await transactions({ id: [], principal: "auditor" });
    expect(mine).toMatchObject([
      { operation: "RevokeApiKey", objects: [[]], properties: { principal: "bob", api_key_id: made.api_key_id } },
      { operation: "CreateApiKey", transaction_id: made.transaction_id, status: "Succeeded", principal: "auditor" },
      { operation: "PutGrant", objects: [["films"]], properties: { principal: "bob", role: "reader" } },
    ]);
    const oldestFirst = await transactions({ id: [], principal: "auditor", ascending: true });
    expect(oldestFirst.map((each) => each.transaction_id)).toEqual(
      mine.map((each) => each.transaction_id).toReversed(),
    );
    expect(operationsOf(await transactions({ id: [], table: table.id.join("$") }))).toEqual([
      "CreateTableVersion",
      "DeclareTable",
    ]);
  });

  test("keep the order in which they were opened, also within a millisecond", async () => {
    const grant = { namespace: ["hurried"], role: "reader" };
    const key = await catalog.keyFor("hurrying", { $: "admin" });
    for (let n = 0; n < 10; n++) await catalog.call("createApiKey", { principal: "hurried", grant }, { key });
    const found = operationsOf(await transactions({ id: [], principal: "hurrying" }));
    expect(found).toEqual(Array.from({ length: 10 }, () => ["CreateApiKey", "PutGrant"]).flat());
  });

  test("have names for DescribeTransaction in the delimiter of the request", async () => {
    const table = await declareTable(catalog);
    const [found] = (await catalog.call("listTransactions", { id: table.id.slice(0, 1) }, { delimiter: "/" })).body
      .transactions;
    const id = found?.transaction_id.split("/") ?? [];
    expect(id).toHaveLength(2);
    const described = (await catalog.call("describeTransaction", { id })).body;
    expect(described.context.operation).toBe(found?.operation);
    expect(Date.parse(described.context.created_at ?? "")).toBe(found?.created_at_millis);
  });

  test("are listed for a table when they also change others, and never for other tables", async () => {
    const namespace = uniqueName("ns");
    await catalog.call("createNamespace", { id: [namespace] });
    const names = ["t", "u", "t%", "T", 't"],["u', "t!"];
    for (const name of names) await catalog.call("declareTable", { id: [namespace, name] });
    const entries = ["t", "u"].map((name) => ({ deregister_table: { id: [namespace, name] } }));
    await catalog.call("batchCommitTables", { operations: entries });
    const of = async (name: string) => operationsOf(await transactions({ id: [], table: `${namespace}$${name}` }));
    expect(await of("t")).toEqual(["BatchCommitTables", "DeclareTable"]);
    expect(await of("u")).toEqual(["BatchCommitTables", "DeclareTable"]);
    for (const name of names.slice(2)) expect(await of(name)).toEqual(["DeclareTable"]);
    expect(await of("missing")).toEqual([]);
    // Pages of one item use both indices.
    const paged = await catalog.call("listTransactions", { id: [], table: `${namespace}$t`, limit: 1 });
    expect(operationsOf(paged.body.transactions)).toEqual(["BatchCommitTables"]);
    expect(operationsOf(await transactions({ id: [], table: `${namespace}$t`, limit: 1 }))).toHaveLength(2);
  });

  test("are those of the namespace and its descendants", async () => {
    const [here, beside] = [uniqueName("here"), uniqueName("here")];
    for (const id of [[here], [beside], [here, "sub"], [here, "sub", "deep"]]) {
      await catalog.call("createNamespace", { id });
      await catalog.call("declareTable", { id: [...id, "t"] });
    }
    const key = await catalog.keyFor("here-reader", { [here]: "reader" });
    const found = await transactions({ id: [here] }, key);
    expect(found.map(({ objects }) => objects[0]?.join("."))).toEqual(
      ["sub.deep.t", "sub.deep", "sub.t", "sub", "t"].map((name) => `${here}.${name}`),
    );
    for (const id of [[], [beside]]) expect((await catalog.call("listTransactions", { id }, { key })).status).toBe(403);
    const elsewhere = await transactions({ id: [here], table: `${beside}$t` }, key);
    expect(elsewhere).toEqual([]);
  });

  test("are found by status, and by the time at which they were opened", async () => {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    const jobs = [];
    for (const status of ["Queued", "Running", "Failed"]) {
      const { job_id } = (await catalog.call("openJob", { id: table.id, column: "c" })).body;
      jobs.push(job_id);
      if (status === "Queued") continue;
      const actions = [{ setStatusAction: { status } }];
      await catalog.call("alterTransaction", { id: job_id.split("$"), actions });
    }
    const id = table.id.slice(0, 1);
    const named = async (request: object) =>
      (await transactions({ id, ...request })).map(({ transaction_id }) => transaction_id);
    expect(await named({ status: "queued,Running" })).toEqual([jobs[1], jobs[0]]);
    expect(await named({ status: "Failed", table: table.id.join("$") })).toEqual([jobs[2]]);
    const all = await transactions({ id });
    expect(all).toHaveLength(5);
    for (const { created_at_millis: at } of all) {
      const since = all.filter((each) => each.created_at_millis >= at).map((each) => each.transaction_id);
      expect(await named({ since_millis: at })).toEqual(since);
      const until = all.filter((each) => each.created_at_millis < at).map((each) => each.transaction_id);
      expect(await named({ until_millis: at })).toEqual(until);
    }
    expect(await named({ until_millis: Number.MAX_SAFE_INTEGER })).toHaveLength(5);
    expect(await named({ since_millis: Date.now() + 3_600_000 })).toEqual([]);
  });

  test("are searched a piece at a time: a page may be empty and not the last, and none is skipped", async () => {
    const [namespace, others] = [[uniqueName("rare")], [uniqueName("common")]];
    const record = { operation: "Test", requestId: "", status: "Succeeded", properties: {} } as const;
    const start = Date.now() - 1000;
    let count = 0;
    await using store = await openStore(catalog.database);
    await store.write(async (session) => {
      const insert = (into: string[], principal: string, tables = ["t"]) =>
        insertAuditRecord(session, {
          ...record,
          id: idAt(start + count++),
          namespace: into,
          objects: tables.map((table) => [...into, table]),
          principal,
        });
      for (const principal of ["one", "two"]) await insert(namespace, principal);
      await insert(others, "few", ["t", "u"]);
      await insert(others, "few");
      await insert(others, "many");
      await insert(namespace, "three");
    });
    // The ids sort directly after the one that they are derived from.
    await executeSql(
      catalog.database,
      `with recursive n (i) as (select 1 union all select i + 1 from n where i < 10500)
       insert into audit_records
         (id, namespace, operation, objects, principal, request_id, status, properties, created_at_millis)
       select id || '-' || n.i, namespace, operation, objects, principal, request_id, status, properties, created_at_millis
       from audit_records, n where principal = 'many'`,
    );
    const first = (await catalog.call("listTransactions", { id: namespace, limit: 10 })).body;
    expect(first.transactions.map((each) => each.principal)).toEqual(["three"]);
    expect(first.page_token).toBeDefined();
    expect((await transactions({ id: namespace, limit: 10 })).map((each) => each.principal)).toEqual([
      "three",
      "two",
      "one",
    ]);
    expect((await transactions({ id: [], principal: "one" })).map((each) => each.objects)).toEqual([
      [[...namespace, "t"]],
    ]);
    // Records of one object and of several are searched separately and keep their order.
    const few = await transactions({ id: others, table: `${others}$t`, principal: "few", limit: 10 });
    expect(few.map((each) => each.objects.length)).toEqual([1, 2]);
  });

  test.each([
    ["status=Done", "status"],
    ["status=", "status"],
    ["principal=", "principal"],
    ["since_millis=yesterday", "since_millis"],
    ["until_millis=-1", "until_millis"],
    ["until_millis=99999999999999999999", "until_millis"],
    ["table=a%24%24b", "empty part"],
    ["limit=0", "limit"],
    ["page_token=x", "page_token"],
  ])("are not listed for %s, and the error says why", async (query, about) => {
    const response = await catalog.fetch(`/management/v1/namespace/$/transaction/list?${query}`);
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(about)]);
  });
});

test("a page of transactions has a hundred at most, because each may be large", async () => {
  const namespace = uniqueName("ns");
  for (let n = 0; n <= 101; n++)
    await catalog.call("createNamespace", { id: n === 0 ? [namespace] : [namespace, `${n}`] });
  const { body } = await catalog.call("listTransactions", { id: [namespace], limit: 1000 });
  expect(body.transactions).toHaveLength(100);
  expect(await transactions({ id: [namespace] })).toHaveLength(101);
});

test("a list of transactions reads about 1 MiB of long records at once and skips none", async () => {
  let read = 0;
  const own = await startTestCatalog({}, { wrapStore: (store) => countingStore(store, (length) => (read += length)) });
  const record = { operation: "Test", principal: "ann", requestId: "", status: "Succeeded", properties: {} } as const;
  const start = Date.now() - 1000;
  await using store = await openStore(own.database);
  // Lengths in KiB: two records of 1.5 MiB have pages of their own.
  const outer = Array<string>(3).fill("a".repeat(250));
  const lengths = [1, 400, 400, 400, 1536, 1, 1536, 400, 1, 1, 400, 700];
  await store.write(async (session) => {
    for (const [n, length] of lengths.entries())
      await insertAuditRecord(session, {
        ...{ ...record, id: idAt(start + n), namespace: ["long"] },
        objects: Array.from({ length }, (_, index) => ["long", ...outer, `${n}_${index}_`.padEnd(250, "a")]),
      });
  });
  for (const ascending of [true, false]) {
    const found = [];
    for (let page_token: string | undefined = ""; page_token !== undefined; ) {
      read = 0;
      const { body }: Answer<"listTransactions"> = await own.call("listTransactions", {
        ...{ id: ["long"], ascending, page_token },
      });
      expect(read).toBeLessThan(1.7 * 1024 * 1024);
      found.push(...body.transactions.map(({ objects }) => objects.length));
      page_token = body.page_token;
    }
    expect(found).toEqual(ascending ? lengths : lengths.toReversed());
  }
  await own.stop();
});

/** Returns a store that reports the length of all rows that it reads outside transactions. */
function countingStore(store: Store, onRead: (length: number) => void): Store {
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      onRead(JSON.stringify(result.rows).length);
      return result;
    },
  };
  return {
    read: { ...store.read, db: store.read.db.withPlugin(plugin) },
    write: (work, options) => store.write(work, options),
    createLimiter: (options) => store.createLimiter(options),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

describe("a dropped table", () => {
  test("is listed where it was, and undropped by a writer there", async () => {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    await catalog.call("dropTable", { id: table.id });
    const [namespace = ""] = table.id;
    const listed = (await catalog.call("listDroppedTables", { id: [namespace] })).body.dropped_tables;
    expect(listed).toMatchObject([{ id: table.id, location: table.location }]);
    const [{ dropped_id, dropped_at_millis, kept_until_millis } = expect.fail()] = listed;
    expect(kept_until_millis - dropped_at_millis).toBe(3_600_000);
    expect((await catalog.call("listDroppedTables", { id: [uniqueName("ns")] })).body.dropped_tables).toEqual([]);

    const writer = await catalog.keyFor("undropper", { [namespace]: "writer" });
    const stranger = await catalog.keyFor("stranger", { elsewhere: "admin" });
    const undrop = (request: object, key = writer) =>
      catalog.call("undropTable", { id: table.id, dropped_id, ...request }, { key });
    // A writer of another namespace cannot undrop the table there under a name that it never had.
    expect((await undrop({}, stranger)).status).toBe(403);
    const taken = await undrop({ id: ["elsewhere", "t"] }, stranger);
    expect(taken.error).toMatchObject({ status: 404, code: 4 });
    expect((await undrop({ new_id: ["elsewhere", "t"] })).status).toBe(403);
    expect((await undrop({ dropped_id: dropped_id + 1000 })).status).toBe(404);
    // A different name with the same text is rejected as well.
    const alias = { id: [table.id.join("$")], dropped_id };
    expect((await catalog.call("undropTable", alias, { delimiter: "." })).error).toMatchObject({
      status: 404,
      code: 4,
    });

    const back = await undrop({ new_id: [namespace, "again"] });
    expect(back.body).toMatchObject({ id: [namespace, "again"] });
    expect((await catalog.call("listTableVersions", { id: [namespace, "again"] })).body.versions).toHaveLength(1);
    expect((await undrop({})).status).toBe(404);
    const audit = await transactions({ id: [namespace], principal: "undropper" });
    expect(audit).toMatchObject([{ operation: "UndropTable", objects: [table.id, [namespace, "again"]] }]);
  });

  test("is listed in pages", async () => {
    const namespace = uniqueName("ns");
    for (let n = 0; n < 3; n++) {
      const table = await declareTable(catalog, namespace);
      await catalog.call("dropTable", { id: table.id });
    }
    const first = (await catalog.call("listDroppedTables", { id: [namespace], limit: 2 })).body;
    const rest = { id: [namespace], limit: 2, page_token: first.page_token };
    const second = (await catalog.call("listDroppedTables", rest)).body;
    expect([first.dropped_tables.length, second.dropped_tables.length, second.page_token]).toEqual([2, 1, undefined]);
  });
});

describe("protection of a table", () => {
  test("is granted and revoked by its admin", async () => {
    const table = await declareTable(catalog);
    const [namespace = ""] = table.id;
    const admin = await catalog.keyFor("keeper", { [namespace]: "admin" });
    const writer = await catalog.keyFor("dropper", { [namespace]: "writer" });
    const protectedNow = await catalog.call("protectTable", { id: table.id }, { key: admin });
    expect(protectedNow.body.protected).toBe(true);
    const refused = await catalog.call("dropTable", { id: table.id }, { key: writer });
    expect(refused.error).toMatchObject({ status: 409, code: 19, detail: expect.stringContaining("UnprotectTable") });
    expect((await catalog.call("unprotectTable", { id: table.id }, { key: writer })).status).toBe(403);
    expect((await catalog.call("unprotectTable", { id: table.id }, { key: admin })).body.protected).toBe(false);
    expect((await catalog.call("dropTable", { id: table.id }, { key: writer })).status).toBe(200);
    expect(operationsOf(await transactions({ id: [namespace], principal: "keeper" }))).toEqual([
      "UnprotectTable",
      "ProtectTable",
    ]);
    expect((await catalog.call("protectTable", { id: [namespace, "missing"] })).error.code).toBe(4);
  });

  test("prevents the deregistration of a table, alone and in a batch, until an admin removes it", async () => {
    const table = await declareTable(catalog);
    await commit(catalog, table, 1);
    const { id } = table;
    const [namespace = ""] = id;
    const writer = await catalog.keyFor("deregisterer", { [namespace]: "writer" });
    await catalog.call("protectTable", { id });
    const operations = [{ deregister_table: { id } }];
    for (const key of [writer, catalog.adminKey])
      for (const refused of [
        await catalog.call("deregisterTable", { id }, { key }),
        await catalog.call("batchCommitTables", { operations }, { key }),
      ])
        expect(refused.error).toMatchObject({
          status: 409,
          code: 19,
          detail: expect.stringContaining("UnprotectTable"),
        });
    expect((await catalog.call("listTableVersions", { id })).body.versions).toHaveLength(1);
    await catalog.call("unprotectTable", { id });
    expect((await catalog.call("batchCommitTables", { operations }, { key: writer })).status).toBe(200);
  });

  test("stays when a writer overwrites the table", async () => {
    const id = await createFilms(catalog);
    const [namespace = ""] = id;
    const key = await catalog.keyFor("overwriter", { [namespace]: "writer" });
    await catalog.call("protectTable", { id });
    const properties = JSON.stringify({ owner: "me" });
    const overwritten = await catalog.call(
      "createTable",
      { id, mode: "Overwrite", properties },
      { key, body: arrowStream(films) },
    );
    const kept = { owner: "me", protected: "true" };
    expect(overwritten.body.properties).toEqual(kept);
    const { location } = (await catalog.call("describeTable", { id })).body;
    const elsewhere = [namespace, "elsewhere"];
    await catalog.call("createTable", { id: elsewhere }, { key, body: arrowStream(films) });
    const { location: other } = (await catalog.call("describeTable", { id: elsewhere })).body;
    await catalog.call("deregisterTable", { id: elsewhere });
    const registered = await catalog.call("registerTable", { id, mode: "Overwrite", location: other }, { key });
    expect(registered.error).toMatchObject({ status: 409, code: 19 });
    expect((await catalog.call("describeTable", { id })).body).toMatchObject({ location, properties: kept });
    expect((await catalog.call("dropTable", { id }, { key })).error.code).toBe(19);
  });
});

describe("the OpenAPI document of management", () => {
  test("has its operations and none of the protocol's", async () => {
    const read = async (path: string) => {
      const { paths } = (await (await catalog.fetch(path, { headers: {} })).json()) as {
        paths: Record<string, Record<string, { operationId?: string; tags: string[] }>>;
      };
      return Object.values(paths).flatMap((methods) => Object.values(methods));
    };
    const idsOf = (all: Record<string, AnyContract>) => Object.values(all).map(({ operationId }) => operationId);
    const found = await read("/management/v1/openapi.json");
    expect(found.map(({ operationId }) => operationId).toSorted()).toEqual(idsOf(managementContracts).toSorted());
    expect(new Set(found.flatMap(({ tags }) => tags))).toEqual(
      new Set(["caller", "principal", "api key", "namespace", "table", "job"]),
    );
    const ofProtocol = (await read("/openapi.json")).flatMap(({ operationId }) => operationId ?? []);
    expect(ofProtocol.toSorted()).toEqual(idsOf(contracts).toSorted());
  });
});
