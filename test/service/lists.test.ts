import { describe, expect, test } from "vitest";
import { commit, declareTable, uniqueName, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();

async function namespaceWithTables(names: readonly string[]): Promise<string> {
  const namespace = uniqueName("ns");
  await catalog.call("createNamespace", { id: [namespace] });
  for (const name of names) await catalog.call("declareTable", { id: [namespace, name] });
  return namespace;
}

describe("ListTables", () => {
  test("answers names, in order, page by page", async () => {
    const namespace = await namespaceWithTables(["d", "a", "c", "b", "e"]);
    const first = (await catalog.call("listTables", { id: [namespace], limit: 2 })).body;
    expect(first.tables).toEqual(["a", "b"]);
    const second = (await catalog.call("listTables", { id: [namespace], limit: 2, page_token: first.page_token })).body;
    expect(second.tables).toEqual(["c", "d"]);
    const last = (await catalog.call("listTables", { id: [namespace], limit: 2, page_token: second.page_token })).body;
    expect(last).toEqual({ tables: ["e"] });
  });

  test("returns no token after a last page that is exactly full", async () => {
    const namespace = await namespaceWithTables(["a", "b"]);
    expect((await catalog.call("listTables", { id: [namespace], limit: 2 })).body).toEqual({ tables: ["a", "b"] });
  });

  test("neither skips nor repeats a table while others appear and disappear", async () => {
    const namespace = await namespaceWithTables(["a", "b", "c", "d"]);
    const first = (await catalog.call("listTables", { id: [namespace], limit: 2 })).body;
    await catalog.call("deregisterTable", { id: [namespace, "b"] });
    await catalog.call("declareTable", { id: [namespace, "aa"] });
    await catalog.call("declareTable", { id: [namespace, "bb"] });
    const next = (await catalog.call("listTables", { id: [namespace], page_token: first.page_token })).body;
    expect(next.tables).toEqual(["bb", "c", "d"]);
  });

  test("leaves out tables without a version when asked to", async () => {
    const written = await declareTable(catalog);
    await commit(catalog, written, 1);
    await declareTable(catalog, written.id[0]);
    const id = written.id.slice(0, 1);
    expect((await catalog.call("listTables", { id, include_declared: false })).body.tables).toEqual([written.id[1]]);
    expect((await catalog.call("listTables", { id, include_declared: true })).body.tables).toHaveLength(2);
  });

  test.each([
    ["limit", "0"],
    ["limit", "-1"],
    ["limit", "ten"],
    ["limit", "1.5"],
    ["limit", "9007199254740993"],
    ["include_declared", "maybe"],
    ["page_token", Buffer.from('["namespaces",["a"]]').toString("base64url")],
  ])("refuses %s=%s", async (name, value) => {
    const { error } = await catalog.call("listTables", { id: [], [name]: value });
    expect(error).toMatchObject({ status: 400, code: 13 });
    expect(error.detail).toContain(name);
  });

  test("is another list than that of LanceDB's remote client, which reads no token", async () => {
    for (const name of [uniqueName("one"), uniqueName("two")]) await catalog.call("declareTable", { id: [name] });
    const read = async (path: string) => {
      const response = await catalog.fetch(`${path}?limit=1`);
      return (await response.json()) as { readonly tables: string[] };
    };
    const ofProtocol = await read("/v1/namespace/$/table/list");
    const ofRemoteClient = await read("/v1/table/");
    expect(ofProtocol).toEqual({ tables: [expect.any(String)], page_token: expect.any(String) });
    expect(ofRemoteClient).toEqual({ tables: ofProtocol.tables });
  });
});

describe("ListAllTables", () => {
  test("answers full identifiers of every namespace, in the delimiter of the request, page by page", async () => {
    const outer = uniqueName("all");
    for (const id of [[outer], [outer, "in"]]) await catalog.call("createNamespace", { id });
    for (const id of [
      [outer, "b"],
      [outer, "in", "a"],
      [outer, "a"],
    ])
      await catalog.call("declareTable", { id });
    const found: string[] = [];
    let page_token: string | undefined;
    do {
      const request = { limit: 1, ...(page_token !== undefined && { page_token }) };
      const { body } = await catalog.call("listAllTables", request, { delimiter: "/" });
      found.push(...body.tables);
      page_token = body.page_token;
    } while (page_token !== undefined);
    expect(found.filter((name) => name.startsWith(outer))).toEqual([`${outer}/a`, `${outer}/b`, `${outer}/in/a`]);
    expect(new Set(found).size).toBe(found.length);
  });
});

describe("ListTableVersions", () => {
  test("pages through versions in both orders while versions are added and removed", async () => {
    const table = await declareTable(catalog);
    for (let version = 1; version <= 5; version++) await commit(catalog, table, version);
    const list = async (request: object) =>
      (await catalog.call("listTableVersions", { id: table.id, limit: 2, ...request })).body;
    const numbers = (body: { versions: { version: number }[] }) => body.versions.map((each) => each.version);

    const newest = await list({ descending: true });
    const oldest = await list({});
    expect(numbers(newest)).toEqual([5, 4]);
    expect(numbers(oldest)).toEqual([1, 2]);

    await commit(catalog, table, 6);
    const ranges = [{ start_version: 2, end_version: 3 }];
    await catalog.call("batchDeleteTableVersions", { id: table.id, ranges });
    expect(numbers(await list({ descending: true, page_token: newest.page_token }))).toEqual([3, 1]);
    expect(numbers(await list({ page_token: oldest.page_token }))).toEqual([3, 4]);
  });

  test("refuses a token of the other order", async () => {
    const table = await declareTable(catalog);
    for (const version of [1, 2]) await commit(catalog, table, version);
    const { page_token } = (await catalog.call("listTableVersions", { id: table.id, limit: 1 })).body;
    const mixed = await catalog.call("listTableVersions", { id: table.id, limit: 1, descending: true, page_token });
    expect(mixed.status).toBe(400);
  });
});

test("the list of tables continues behind a name, which LanceDB's client sends as a token", async () => {
  const namespace = uniqueName("names");
  await catalog.call("createNamespace", { id: [namespace] });
  for (const name of ["a", "b", "c"]) await catalog.call("declareTable", { id: [namespace, name] });
  const list = async (page_token: string) => catalog.call("listTables", { id: [namespace], page_token, limit: 1 });
  const first = await list("a");
  expect(first.body.tables).toEqual(["b"]);
  expect((await list(first.body.page_token ?? "")).body.tables).toEqual(["c"]);
  const other = Buffer.from(JSON.stringify(["namespaces", "a"])).toString("base64url");
  expect((await list(other)).error.status).toBe(400);
});
