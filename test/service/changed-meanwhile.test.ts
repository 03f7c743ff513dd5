import { existsSync } from "node:fs";
import { CatalogError } from "@tiltyard/protocol";
import { expect, test, vi } from "vitest";
import type { Storage } from "../../service/storage/storage.ts";
import { pathOf, startTestCatalog, useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms, films } from "../support/rows.ts";

const catalog = useCatalog();

/** Returns an Arrow stream that ends when `release` is called, and the time at which all but its last byte was read. */
function heldStream() {
  const bytes = arrowStream(films);
  const read = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  async function* chunks() {
    yield bytes.slice(0, bytes.length - 1);
    read.resolve();
    await end.promise;
    yield bytes.slice(bytes.length - 1);
  }
  return { body: ReadableStream.from(chunks()), read: read.promise, release: end.resolve };
}

/** Starts a request that has opened the latest version of a branch and waits for its last byte. */
async function start(name: "insertIntoTable" | "mergeInsertIntoTable", request: Readonly<Record<string, unknown>>) {
  const { body, read, release } = heldStream();
  const changed = catalog.call(name, request, { body });
  await read;
  // This later request opens the latest version, too, and then does more.
  await catalog.call("deleteFromTable", { ...request, predicate: "id < 0" });
  return async () => {
    release();
    return (await changed).error;
  };
}

test("a table that is dropped during a request is not found, instead of its files", async () => {
  const id = await createFilms(catalog);
  const { location } = (await catalog.call("describeTable", { id })).body;
  const finish = await start("mergeInsertIntoTable", { id, on: ["id"], when_not_matched_insert_all: true });
  await catalog.call("dropTable", { id });
  await vi.waitFor(() => expect(existsSync(`/${pathOf({ id, location })}`)).toBe(false));
  expect(await finish()).toMatchObject({ status: 404, error: `table ${id.join("$")} does not exist` });
});

test("an insertion whose version cannot be placed is a conflict that names it, and the version exists later", async () => {
  let isAway = false;
  const wrapStorage = (storage: Storage): Storage => ({
    at: async (location) => {
      const store = await storage.at(location);
      const copy: typeof store.copy = async (...args) => {
        if (isAway) throw new CatalogError("ServiceUnavailable", "the store is away");
        return store.copy(...args);
      };
      return { ...store, copy };
    },
  });
  const own = await startTestCatalog({}, { wrapStorage });
  const id = await createFilms(own);
  isAway = true;
  const { error } = await own.call("insertIntoTable", { id }, { body: arrowStream(films) });
  isAway = false;
  // A client would repeat the request after 503, and insert the rows twice.
  expect(error).toMatchObject({ status: 409, code: 14, error: expect.stringContaining("Do not repeat it") });
  expect((await own.call("countTableRows", { id })).body).toBe(2 * films.length);
  await own.stop();
});

test("a branch that is deleted during a request is not found, instead of its files", async () => {
  const id = await createFilms(catalog);
  await catalog.call("createTableBranch", { id, name: "side" });
  await catalog.call("deleteFromTable", { id, branch: "side", predicate: "id = 2" });
  const finish = await start("insertIntoTable", { id, branch: "side" });
  await catalog.call("deleteTableBranch", { id, name: "side" });
  expect(await finish()).toMatchObject({ status: 404, error: expect.stringContaining('no branch "side"') });
});

test("a table whose versions are all deleted during a request gets no version without its older files", async () => {
  const id = await createFilms(catalog);
  const finish = await start("insertIntoTable", { id });
  await catalog.call("batchDeleteTableVersions", { id, ranges: [{ start_version: 0, end_version: -1 }] });
  expect(await finish()).toMatchObject({ status: 409, error: expect.stringContaining("were deleted concurrently") });
  expect((await catalog.call("listTableVersions", { id })).body.versions).toEqual([]);
});

test("a merge into a table that is overwritten during the request is a conflict, which a retry resolves", async () => {
  const id = await createFilms(catalog);
  const finish = await start("mergeInsertIntoTable", { id, on: ["id"], when_matched_update_all: true });
  await catalog.call("createTable", { id, mode: "Overwrite" }, { body: arrowStream(films) });
  expect(await finish()).toMatchObject({ status: 409, code: 14 });
});
