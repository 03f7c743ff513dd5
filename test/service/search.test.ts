import { Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { beforeAll, describe, expect, test } from "vitest";
import { uniqueName, useCatalog } from "../support/catalog.ts";
import { readRows } from "../support/rows.ts";

const catalog = useCatalog();
const utf8 = (values: readonly string[]) => vectorFromArray(values, new Utf8());

async function createTexts(indexed: readonly string[]): Promise<string[]> {
  const id = [uniqueName("texts")];
  const texts = new Table({
    id: vectorFromArray([0, 1, 2]),
    title: utf8(["quick brown fox", "brown quick fox", "dog"]),
    about: utf8(["cat", "cat", "quick quick"]),
  });
  await catalog.call("createTable", { id }, { body: tableToIPC(texts, "stream") });
  for (const column of indexed)
    await catalog.call("createTableIndex", { id, column, index_type: "FTS", with_position: true });
  return id;
}

async function search(id: readonly string[], query: object, more: object = {}) {
  const full_text_query = { structured_query: { query } };
  const answer = await catalog.call("queryTable", { id, k: 9, full_text_query, ...more } as never);
  return answer.status === 200 ? (await readRows(answer.body)).map((row) => row.id).toSorted() : answer.error;
}

test("a query with more than 32 bits of k or offset returns all rows or none", async () => {
  const id = await createTexts([]);
  const ids = async (query: object) => {
    const answer = await catalog.call("queryTable", { id, ...query } as never);
    return answer.status === 200 ? (await readRows(answer.body)).map((row) => row.id) : answer.error;
  };
  expect(await ids({ k: 2 ** 32 + 1 })).toEqual([0, 1, 2]);
  expect(await ids({ k: 9, offset: 2 ** 32 })).toEqual([]);
});

describe("a full-text query without a column", () => {
  let one: string[];
  let two: string[];
  beforeAll(async () => {
    one = await createTexts(["title"]);
    two = await createTexts(["title", "about"]);
  });
  const quick = { match: { terms: "quick" } };

  test.each([
    [quick, [0, 1]],
    [{ match: { terms: "quik", fuzziness: 1 } }, [0, 1]],
    [{ match: { terms: "quick fox", operator: "And" } }, [0, 1]],
    [{ phrase: { terms: "quick brown" } }, [0]],
    [{ multi_match: { match_queries: [{ terms: "quick" }, { terms: "dog" }] } }, [0, 1, 2]],
    [{ boost: { positive: quick, negative: { match: { terms: "dog" } } } }, [0, 1]],
    [{ boolean: { should: [], must: [quick], must_not: [{ phrase: { terms: "quick brown" } }] } }, [1]],
  ])("%j searches the column with an index", async (query, ids) => {
    expect(await search(one, query)).toEqual(ids);
  });

  test("searches all columns with an index, and a phrase none of several", async () => {
    expect(await search(two, quick)).toEqual([0, 1, 2]);
    expect(await search(two, { match: { terms: "quik", fuzziness: 1 } })).toEqual([0, 1, 2]);
    expect(await search(two, { match: { terms: "quick", column: "title" } })).toEqual([0, 1]);
    expect(await search(two, { phrase: { terms: "quick brown" } })).toMatchObject({
      status: 400,
      detail: expect.stringContaining("must name its column"),
    });
  });

  test("is 400 for more typing errors than the library can allow", async () => {
    for (const fuzziness of [10, 300]) {
      const long = { match: { terms: "quick brown fox", column: "title", fuzziness } };
      expect(await search(one, long)).toMatchObject({ status: 400 });
    }
  });

  test("is 400 without an index", async () => {
    expect(await search(await createTexts([]), quick)).toMatchObject({ status: 400 });
  });

  test("is 406 for a filter after the search, which the library does not support", async () => {
    expect(await search(one, quick, { filter: "id > 0", prefilter: false })).toMatchObject({ status: 406 });
    expect(await search(one, quick, { filter: "id > 0", prefilter: true })).toEqual([1]);
  });
});

describe("an option of an index", () => {
  test("is 406 where the library lacks it, and one that is off or of another type is not", async () => {
    const id = await createTexts([]);
    const build = async (more: object) =>
      (await catalog.call("remoteCreateTableIndex", { id, column: "title", index_type: "FTS", ...more } as never))
        .status;
    expect(await build({ split_identifiers: true })).toBe(406);
    for (const index_type of ["ZONEMAP", "BLOOMFILTER", "NGRAM", "IVF_SQ"])
      expect(await build({ index_type })).toBe(406);
    expect(await build({ index_type: "IVF_FLAT", target_partition_size: 100 })).toBe(406);
    expect(await build({ index_type: "IVF_HNSW_PQ", num_bits: 4 })).toBe(406);
    expect(await build({ block_size: 100 })).toBe(400);
    expect(await build({ split_identifiers: false, block_size: 256, lance_tokenizer: null })).toBe(200);
    expect(await build({ index_type: "BTREE", num_partitions: 1, name: "by_title" })).toBe(200);
  });

  test("replaces an index of the same name unless it says otherwise", async () => {
    const id = await createTexts(["title"]);
    const index = { id, column: "title", index_type: "FTS" };
    expect((await catalog.call("remoteCreateTableIndex", { ...index, replace: false })).error).toMatchObject({
      status: 400,
      detail: expect.stringContaining("already exists"),
    });
    expect((await catalog.call("remoteCreateTableIndex", index)).status).toBe(200);
  });
});
