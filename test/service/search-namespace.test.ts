import { describe, expect, test } from "vitest";
import { uniqueName, useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();

async function namespaceWith(tables: readonly string[], parent: readonly string[] = []): Promise<string[]> {
  const id = [...parent, uniqueName("place")];
  await catalog.call("createNamespace", { id });
  for (const name of tables) await catalog.call("declareTable", { id: [...id, name] });
  return id;
}

const search = (id: readonly string[], name: string, more: object = {}) =>
  catalog.call("searchNamespace", { id, name, ...more });

describe("SearchNamespace", () => {
  test("finds tables by a part of their name in any case, the best match first", async () => {
    const id = await namespaceWith(["my_films", "films_old", "Films", "people", "a_b"]);
    const names = async (name: string, more: object = {}) =>
      (await search(id, name, more)).body.tables.map((found) => found.at(-1));
    expect(await names("films")).toEqual(["Films", "films_old", "my_films"]);
    expect(await names("FILMS", { limit: 2 })).toEqual(["Films", "films_old"]);
    // Wildcards of SQL are ordinary characters.
    expect(await names("%")).toEqual([]);
    expect(await names("_b")).toEqual(["a_b"]);
  });

  test("finds namespaces at any depth, and tables by the end of their namespace", async () => {
    const id = await namespaceWith([]);
    const inner = [...id, "features"];
    await catalog.call("createNamespace", { id: inner });
    await catalog.call("declareTable", { id: [...inner, "clicks"] });
    await catalog.call("declareTable", { id: [...id, "clicks"] });
    expect((await search([], "feature")).body.namespaces).toContainEqual(inner);
    expect((await search(id, "tures$cl")).body.tables).toEqual([[...inner, "clicks"]]);
    expect((await search(id, "features$")).body.tables).toEqual([[...inner, "clicks"]]);
    expect((await search(id, "features$licks")).body.tables).toEqual([]);
  });

  test("does not find dropped tables", async () => {
    const id = await namespaceWith(["leaving"]);
    await catalog.call("deregisterTable", { id: [...id, "leaving"] });
    expect((await search([], "leaving")).body).toEqual({ namespaces: [], tables: [], columns: [] });
  });

  test("finds only what the caller may read", async () => {
    const readable = await namespaceWith(["secret_a"]);
    const other = await namespaceWith(["secret_b"]);
    const key = await catalog.keyFor(uniqueName("reader"), { [readable.join("$")]: "reader" });
    expect((await catalog.call("searchNamespace", { id: readable, name: "secret" }, { key })).body.tables).toEqual([
      [...readable, "secret_a"],
    ]);
    for (const id of [[], other])
      expect((await catalog.call("searchNamespace", { id, name: "secret" }, { key })).status).toBe(403);
  });

  test.each(["", "a".repeat(65), "\0", "a\u001fb"])("rejects the name %j", async (name) => {
    const { status } = await catalog.fetch(`/management/v1/namespace/$/search?name=${encodeURIComponent(name)}`);
    expect(status).toBe(400);
  });
});
