import { readdirSync, readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { tableFromArrays } from "apache-arrow";
import { describe, expect, test } from "vitest";
import type { ObjectStore } from "../../service/storage/object-store.ts";
import type { Storage } from "../../service/storage/storage.ts";
import {
  commit,
  declareTable,
  finalName,
  pathOf,
  stageManifest,
  startTestCatalog,
  type TestCatalog,
  uniqueName,
  useCatalog,
} from "../support/catalog.ts";
import { arrowStream, createFilms, films, readRows } from "../support/rows.ts";

const catalog = useCatalog();

const replace = (id: readonly string[], metadata: object, more: object = {}) =>
  catalog.call("updateTableSchemaMetadata", { id, metadata, ...more });

async function described(id: readonly string[], more: object = {}) {
  const { version, schema } = (await catalog.call("describeTable", { id, load_detailed_metadata: true, ...more })).body;
  return { version, metadata: schema?.metadata };
}

async function titles(id: readonly string[], more: object = {}): Promise<unknown[]> {
  const { body } = await catalog.call("queryTable", { id, k: 100, ...more });
  return (await readRows(body)).map(({ title }) => title).toSorted();
}

const mebibyte = 1024 * 1024;
const titlesOfFilms = films.map(({ title }) => title).toSorted();

describe("UpdateTableSchemaMetadata", () => {
  test("replaces all of it in a version of its own, and leaves the rest of the table as it was", async () => {
    const id = await createFilms(catalog);
    await catalog.call("createTableScalarIndex", { id, column: "id", index_type: "BTREE", name: "by_id" });
    await catalog.call("updateFieldMetadata", { id, updates: [{ path: "id", metadata: { unit: "none" } }] });
    expect((await replace(id, { owner: "me", größe: "5 µm" })).body).toEqual({ owner: "me", größe: "5 µm" });
    expect(await described(id)).toEqual({ version: 4, metadata: { owner: "me", größe: "5 µm" } });
    expect((await replace(id, { title: "films" })).body).toEqual({ title: "films" });
    expect(await described(id)).toEqual({ version: 5, metadata: { title: "films" } });
    expect(await described(id, { version: 4 })).toMatchObject({ metadata: { owner: "me" } });

    expect(await titles(id)).toEqual(titlesOfFilms);
    const { schema } = (await catalog.call("describeTable", { id, load_detailed_metadata: true })).body;
    expect(schema?.fields[0]?.metadata).toEqual({ unit: "none" });
    const { indexes } = (await catalog.call("listTableIndices", { id })).body;
    expect(indexes).toMatchObject([{ index_name: "by_id", num_indexed_rows: 3 }]);
    expect((await replace(id, {})).body).toEqual({});
    expect(await described(id)).toEqual({ version: 6, metadata: undefined });
  });

  test("accepts keys that are fields of other requests", async () => {
    const id = await createFilms(catalog);
    const metadata = { id: "a", branch: "b", identity: "c", context: "d", delimiter: "e", metadata: "f" };
    expect((await replace(id, metadata)).body).toEqual(metadata);
    expect(await described(id)).toEqual({ version: 2, metadata });
  });

  test("follows the latest version after the records above it were deleted", async () => {
    const id = await createFilms(catalog);
    await replace(id, { deleted: "yes" });
    await catalog.call("batchDeleteTableVersions", { id, ranges: [{ start_version: 2, end_version: -1 }] });
    expect((await replace(id, { owner: "me" })).body).toEqual({ owner: "me" });
    expect(await described(id)).toEqual({ version: 3, metadata: { owner: "me" } });
  });

  test("is a transaction that names the operation, the principal and the table", async () => {
    const id = await createFilms(catalog);
    const key = await catalog.keyFor("annotator", { [id.slice(0, -1).join("$")]: "writer" });
    await catalog.call("updateTableSchemaMetadata", { id, metadata: { a: "b" } }, { key });
    const { transactions } = (await catalog.call("listTransactions", { id: id.slice(0, -1) })).body;
    expect(transactions[0]).toMatchObject({
      operation: "UpdateTableSchemaMetadata",
      principal: "annotator",
      objects: [id],
      status: "Succeeded",
    });
  });

  test("changes a branch, and leaves main as it is", async () => {
    const id = await createFilms(catalog);
    await catalog.call("createTableBranch", { id, name: "try/out" });
    await replace(id, { on: "branch" }, { branch: "try/out" });
    expect(await described(id, { branch: "try/out" })).toMatchObject({ metadata: { on: "branch" } });
    expect(await described(id)).toEqual({ version: 1, metadata: undefined });
    await catalog.call(
      "insertIntoTable",
      { id, branch: "try/out" },
      { body: arrowStream([{ id: 4, title: "Zerkalo" }]) },
    );
    expect(await titles(id, { branch: "try/out" })).toContain("Zerkalo");
    expect(await described(id, { branch: "try/out" })).toMatchObject({ metadata: { on: "branch" } });
  });

  test("loses nothing of concurrent writers, and they nothing of it", async () => {
    const id = await createFilms(catalog);
    const numbers = [10, 11, 12, 13, 14];
    const answers = await Promise.all(
      numbers.flatMap<Promise<{ status: number }>>((number) => [
        catalog.call("insertIntoTable", { id }, { body: arrowStream([{ id: number, title: `film ${number}` }]) }),
        replace(id, { number: String(number) }),
      ]),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(await titles(id)).toEqual([...titlesOfFilms, ...numbers.map((number) => `film ${number}`)].toSorted());
    const { version, metadata } = await described(id);
    expect(version).toBe(1 + 2 * numbers.length);
    expect(numbers.map(String)).toContain(metadata?.number);
  });

  test("keeps unknown fields of the manifest byte for byte", async () => {
    const id = await createFilms(catalog);
    const unknown = Buffer.from([0xfa, 0x07, 4, 0xde, 0xad, 0xbe, 0xef]);
    await commitManifest(id, 2, unknown);
    expect((await replace(id, { a: "b" })).status).toBe(200);
    expect(await described(id)).toEqual({ version: 3, metadata: { a: "b" } });
    expect(readManifest(await tableOf(id), 3).includes(unknown)).toBe(true);
  });

  test("names the manifest as the table's others are named", async () => {
    const id = await createFilms(catalog);
    await commitManifest(id, 2, Buffer.alloc(0), "V1");
    await replace(id, { a: "b" });
    const { version } = (await catalog.call("describeTableVersion", { id })).body;
    expect(version).toMatchObject({ version: 3, manifest_path: expect.stringMatching(/\/_versions\/3\.manifest$/) });
    expect(await titles(id)).toEqual(titlesOfFilms);
  });

  test("is 406 for a table that requires a newer writer and for an invalid manifest", async () => {
    const id = await createFilms(catalog);
    const flags = Buffer.from([0x50, 0x80, 0x20]);
    await commitManifest(id, 2, flags);
    expect((await replace(id, { a: "b" })).error).toMatchObject({
      status: 406,
      code: 0,
      detail: expect.stringContaining("feature flags 4096"),
    });
    const other = await declareTable(catalog);
    for (const [version, content] of [
      [1, "version 1"],
      [2, ""],
      [3, `${"\0".repeat(12)}LANC`],
      [4, `\u0005\0\0\0abc${"\0".repeat(12)}LANC`],
    ] as const) {
      await commit(catalog, other, version, { content });
      expect((await replace(other.id, { a: "b" })).error).toMatchObject({ status: 406, code: 0 });
    }
  });

  test("is 406 for a manifest whose fields would exhaust the memory", async () => {
    const table = await declareTable(catalog);
    const manyFields = Buffer.alloc(2 * 600_000, Buffer.from([0x12, 0]));
    await commit(catalog, table, 1, { content: manifestOf(manyFields) });
    const { error } = await replace(table.id, { a: "b" });
    expect(error).toMatchObject({ status: 406, detail: expect.stringContaining("500000 fields") });
  });

  test("is 404 without a table, a branch or a version, and 400 for anything but a map of strings", async () => {
    const id = await createFilms(catalog);
    expect((await replace([uniqueName("ns"), "t"], {})).error).toMatchObject({ status: 404, code: 4 });
    expect((await replace(id, {}, { branch: "b" })).error).toMatchObject({ status: 404, code: 22 });
    expect((await replace((await declareTable(catalog)).id, {})).error).toMatchObject({ status: 404, code: 11 });
    for (const metadata of [{ a: 1 }, { a: null }, [], { metadata: { a: "b" } }])
      expect((await replace(id, metadata)).error).toMatchObject({ status: 400, code: 13 });
    expect(await described(id)).toEqual({ version: 1, metadata: undefined });
  });
});

describe("the metadata of a schema and its fields", () => {
  const columns = Array.from({ length: 20 }, (_, index) => `c${index}`);
  /** Creates a table with so many columns that the bounds of one field allow 5 MiB of metadata. */
  async function createWide(): Promise<string[]> {
    const id = (await createFilms(catalog)).with(-1, uniqueName("wide"));
    const wide = tableFromArrays(Object.fromEntries(columns.map((column) => [column, Int32Array.of(1)])));
    expect((await catalog.call("createTable", { id }, { body: arrowStream([wide]) })).status).toBe(200);
    return id;
  }
  /** Sets 240 KiB of metadata of each of some columns. */
  const fill = (id: readonly string[], start: number, end: number) => {
    const metadata = { long: "x".repeat(240 * 1024) };
    const updates = columns.slice(start, end).map((path) => ({ path, metadata }));
    return catalog.call("updateFieldMetadata", { id, updates });
  };
  const refused = {
    status: 400,
    code: 13,
    detail: expect.stringMatching(
      /^metadata: the schema and its fields would have \d+ bytes of metadata, and at most 4194304 are allowed\. Remove keys/,
    ),
  };

  test("have at most 4 MiB after a change, and a refused one leaves no file", async () => {
    const id = await createWide();
    const large = "x".repeat(700 * 1024);
    expect((await fill(id, 0, 15)).status).toBe(200);
    expect((await fill(id, 15, 20)).error).toMatchObject(refused);
    expect((await replace(id, { large })).error).toMatchObject(refused);
    const files = readdirSync(`/${pathOf(await tableOf(id))}/_versions`);
    expect(files.filter((name) => name.includes(".manifest-"))).toEqual([]);

    const updates = ["c0", "c1"].map((path) => ({ path, metadata: { long: null } }));
    expect((await catalog.call("updateFieldMetadata", { id, updates })).status).toBe(200);
    expect((await replace(id, { large })).status).toBe(200);
  });

  test("do not grow beyond the size that another writer left", async () => {
    const id = await createWide();
    await commitManifest(id, 2, schemaMetadata("other", "x".repeat(5 * mebibyte)));
    expect((await fill(id, 0, 1)).error.detail).toContain("at most 5242897 are allowed");
    expect((await replace(id, { other: "less" })).status).toBe(200);
    expect((await fill(id, 0, 1)).status).toBe(200);
  });
});

test("one large manifest is changed at a time", async () => {
  let open = 0;
  let openMax = 0;
  const wrapStorage = (storage: Storage): Storage => ({
    at: async (location) => {
      const objects = await storage.at(location);
      const create: ObjectStore["create"] = async (key, content) => {
        if (content.length < mebibyte) return objects.create(key, content);
        open += 1;
        openMax = Math.max(openMax, open);
        try {
          await setTimeout(20);
          return await objects.create(key, content);
        } finally {
          open -= 1;
        }
      };
      return { ...objects, create };
    },
  });
  const catalog = await startTestCatalog({}, { wrapStorage });
  try {
    const unknown = Buffer.concat([Buffer.from([0xfa, 0x07, 0x80, 0x80, 0x80, 0x01]), Buffer.alloc(2 * mebibyte)]);
    const tables = [];
    for (let count = 0; count < 4; count += 1) {
      const id = await createFilms(catalog);
      await commitManifest(id, 2, unknown, "V2", catalog);
      // Both changes of a table are in the same process.
      tables.push(id, id);
    }
    const changes = tables.map((id) => catalog.call("updateTableSchemaMetadata", { id, metadata: { a: "b" } }));
    expect((await Promise.all(changes)).map(({ status }) => status)).toEqual(changes.map(() => 200));
    expect(openMax).toBe(1);
  } finally {
    await catalog.stop();
  }
});
/** Returns an entry of the metadata of a schema, as a field of a manifest. */
function schemaMetadata(key: string, value: string): Buffer {
  const writer = new BinaryWriter().tag(5, WireType.LengthDelimited).fork();
  writer.tag(1, WireType.LengthDelimited).string(key).tag(2, WireType.LengthDelimited).string(value);
  return Buffer.from(writer.join().finish());
}

/** Returns a manifest file without other sections. */
function manifestOf(message: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(message.length);
  return Buffer.concat([length, message, Buffer.from(`${"\0".repeat(12)}LANC`)]);
}

async function tableOf(id: string[], of: Pick<TestCatalog, "call"> = catalog) {
  return { id, location: (await of.call("describeTable", { id })).body.location };
}

function readManifest(table: { id: string[]; location: string }, version: number): Buffer {
  return readFileSync(`/${pathOf(table)}/_versions/${finalName(version)}`);
}

/** Commits the manifest of the previous version again with an additional field at its end. */
async function commitManifest(
  id: string[],
  version: number,
  field: Buffer,
  naming_scheme: "V1" | "V2" = "V2",
  of: Pick<TestCatalog, "call"> = catalog,
): Promise<void> {
  const table = await tableOf(id, of);
  const manifest = readManifest(table, version - 1);
  const position = Number(manifest.readBigUInt64LE(manifest.length - 16));
  const written = Buffer.from([0x18, version]);
  const changed = Buffer.concat([manifest.subarray(0, -16), written, field, manifest.subarray(-16)]);
  changed.writeUInt32LE(manifest.readUInt32LE(position) + written.length + field.length, position);
  const manifest_path = stageManifest(table, version, { content: changed, scheme: naming_scheme });
  const request = { id, version, manifest_path, naming_scheme };
  expect((await of.call("createTableVersion", request)).status).toBe(200);
}
