import { describe, expect, test } from "vitest";
import { deleteNamespace } from "../../service/store/namespaces.ts";
import { openStore } from "../../service/store/open.ts";
import type { Store } from "../../service/store/store.ts";
import { declareTable, startTestCatalog, uniqueName, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();

describe("CreateNamespace", () => {
  test("creates a namespace with its properties", async () => {
    const id = [uniqueName("ns")];
    const created = await catalog.call("createNamespace", { id, properties: { owner: "ada" } });
    expect(created.body.properties).toEqual({ owner: "ada" });
    expect((await catalog.call("describeNamespace", { id })).body.properties).toEqual({ owner: "ada" });
    expect((await catalog.call("namespaceExists", { id })).status).toBe(200);
  });

  test("is not found when the parent is dropped during an Overwrite", async () => {
    let interrupt = async () => {};
    const wrapStore = (store: Store): Store => {
      const write = store.write.bind(store);
      return Object.assign(store, {
        write: async (...args: Parameters<typeof write>) => {
          await interrupt();
          return write(...args);
        },
      });
    };
    const own = await startTestCatalog({}, { wrapStore });
    const [parent, id] = [["parent"], ["parent", "child"]];
    for (const each of [parent, id]) await own.call("createNamespace", { id: each });
    await using other = await openStore(own.database);
    interrupt = async () => {
      interrupt = async () => {};
      for (const each of [id, parent]) await other.write((session) => deleteNamespace(session, each));
    };
    expect((await own.call("createNamespace", { id, mode: "Overwrite" })).error).toMatchObject({
      status: 404,
      code: 1,
    });
    await own.stop();
  });

  test("is refused when the parent does not exist", async () => {
    const { status, error } = await catalog.call("createNamespace", { id: ["nowhere", "child"] });
    expect([status, error.code]).toEqual([404, 1]);
  });

  test.each([undefined, "create", "Create", "CREATE"])("is refused with the mode %s when it exists", async (mode) => {
    const id = [uniqueName("ns")];
    await catalog.call("createNamespace", { id });
    const { status, error } = await catalog.call("createNamespace", { id, mode });
    expect([status, error.code]).toEqual([409, 2]);
  });

  test.each(["ExistOk", "exist_ok", "EXIST_OK"])("keeps what exists with the mode %s", async (mode) => {
    const id = [uniqueName("ns")];
    await catalog.call("createNamespace", { id, properties: { kept: "yes" } });
    const again = await catalog.call("createNamespace", { id, mode, properties: { kept: "no" } });
    expect(again.body.properties).toEqual({ kept: "yes" });
  });

  test("replaces the namespace and drops its content with the mode Overwrite", async () => {
    const table = await declareTable(catalog);
    const id = table.id.slice(0, 1);
    const answer = await catalog.call("createNamespace", { id, mode: "Overwrite", properties: { new: "yes" } });
    expect(answer.body.properties).toEqual({ new: "yes" });
    expect((await catalog.call("listTables", { id })).body.tables).toEqual([]);
  });

  test("refuses an unknown mode", async () => {
    const { status, error } = await catalog.call("createNamespace", { id: [uniqueName("ns")], mode: "Replace" });
    expect([status, error.code]).toEqual([400, 13]);
    expect(error.detail).toBe("mode: must be one of Create, ExistOk, Overwrite");
  });

  test("is refused for the root, which always exists", async () => {
    expect((await catalog.call("createNamespace", { id: [] })).status).toBe(409);
    expect((await catalog.call("createNamespace", { id: [], mode: "Overwrite" })).status).toBe(409);
    expect((await catalog.call("createNamespace", { id: [], mode: "ExistOk" })).status).toBe(200);
  });

  test("refuses the property __proto__", async () => {
    const response = await catalog.fetch(`/v1/namespace/${uniqueName("ns")}/create`, {
      method: "POST",
      body: '{"properties": {"__proto__": "x"}}',
    });
    expect(response.status).toBe(400);
  });
});

describe("ListNamespaces", () => {
  test("lists the children of a namespace by name, and no grandchildren", async () => {
    const parent = uniqueName("ns");
    for (const id of [[parent], [parent, "b"], [parent, "a"], [parent, "a", "deep"], [parent, "a b"], [parent, "a "]])
      await catalog.call("createNamespace", { id });
    expect((await catalog.call("listNamespaces", { id: [parent] })).body).toEqual({
      namespaces: ["a", "a ", "a b", "b"],
    });
  });

  test("is 404 for a namespace that does not exist", async () => {
    const { status, error } = await catalog.call("listNamespaces", { id: ["nowhere"] });
    expect([status, error.code]).toEqual([404, 1]);
  });

  test("is refused with two delimiters", async () => {
    const response = await catalog.fetch("/v1/namespace/a.b/list?delimiter=.&delimiter=$");
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { code: 13, detail: "delimiter: must not be repeated" },
    ]);
  });

  test("reads the root by any delimiter", async () => {
    const name = uniqueName("ns");
    await catalog.call("createNamespace", { id: [name] }, { delimiter: "|" });
    const { body } = await catalog.call("listNamespaces", { id: [] }, { delimiter: "|" });
    expect(body.namespaces).toContain(name);
  });
});

describe("DropNamespace", () => {
  test("drops an empty namespace and answers its properties", async () => {
    const id = [uniqueName("ns")];
    await catalog.call("createNamespace", { id, properties: { a: "b" } });
    expect((await catalog.call("dropNamespace", { id })).body.properties).toEqual({ a: "b" });
    expect((await catalog.call("namespaceExists", { id })).status).toBe(404);
  });

  test("is 404 for one that does not exist, and succeeds with the mode Skip", async () => {
    const { status, error } = await catalog.call("dropNamespace", { id: ["nowhere"] });
    expect([status, error.code]).toEqual([404, 1]);
    expect((await catalog.call("dropNamespace", { id: ["nowhere"], mode: "skip" })).body).toEqual({});
  });

  test("is refused while the namespace holds a table or a namespace", async () => {
    const table = await declareTable(catalog);
    const holder = [uniqueName("ns")];
    await catalog.call("createNamespace", { id: holder });
    await catalog.call("createNamespace", { id: [...holder, "child"] });
    for (const id of [table.id.slice(0, 1), holder]) {
      const { status, error } = await catalog.call("dropNamespace", { id, behavior: "Restrict" });
      expect([status, error.code]).toEqual([409, 3]);
    }
  });

  test("drops all that is under it with the behavior Cascade, and nothing beside it", async () => {
    const name = uniqueName("ns");
    const beside = await declareTable(catalog, `${name}b`);
    for (const id of [[name], [name, "in"], [name, "in", "deep"]]) await catalog.call("createNamespace", { id });
    await catalog.call("declareTable", { id: [name, "in", "deep", "t"] });
    await catalog.call("dropNamespace", { id: [name], behavior: "Cascade" });
    expect((await catalog.call("tableExists", { id: [name, "in", "deep", "t"] })).status).toBe(404);
    expect((await catalog.call("namespaceExists", { id: [name, "in"] })).status).toBe(404);
    expect((await catalog.call("tableExists", { id: beside.id })).status).toBe(200);
  });

  test("is refused for the root", async () => {
    expect((await catalog.call("dropNamespace", { id: [], behavior: "Cascade" })).status).toBe(400);
  });
});
