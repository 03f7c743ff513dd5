/** Manifests that clients forge are refused before they need much memory or delay other requests. */
import { setImmediate } from "node:timers/promises";
import { hasKind } from "@tiltyard/protocol";
import { expect, test } from "vitest";
import { indicesOf } from "../../service/lance/indices.ts";
import { Manifest } from "../../service/lance/manifest.ts";
import { indexTypeOf } from "../../service/operations/table-index.ts";

const isUnsupported = expect.toSatisfy((error: unknown) => hasKind(error, "Unsupported"));

/** Returns the message with one field of bytes. @param tag The number of the field, times 8, plus 2. */
function messageWith(tag: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([tag]), varint(content.length), content]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    bytes.push(rest < 0x80 ? rest : (rest & 0x7f) | 0x80);
    if (rest < 0x80) return Buffer.from(bytes);
  }
}

function section(content: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(content.length);
  return Buffer.concat([length, content]);
}

/** Returns a file with a section of indices at the position 0 and the fields of a manifest. */
function fileWith(indices: Uint8Array, ...fields: readonly Uint8Array[]): Buffer {
  const first = section(indices);
  const footer = Buffer.alloc(16);
  footer.writeBigUInt64LE(BigInt(first.length));
  footer.write("LANC", 12);
  return Buffer.concat([first, section(Buffer.concat([Buffer.from([0x30, 0x00]), ...fields])), footer]);
}

/** Returns a field of the schema. */
function schemaField(id: number, parent: number, name: string): Buffer {
  const parentId = Buffer.concat([Buffer.from([0x20]), varint(parent)]);
  return messageWith(
    0x0a,
    Buffer.concat([messageWith(0x12, Buffer.from(name)), Buffer.from([0x18]), varint(id), parentId]),
  );
}

/** Returns an index of columns with these ids. */
function indexOf(...ids: readonly number[]): Buffer {
  return messageWith(
    0x0a,
    Buffer.concat([messageWith(0x12, Buffer.concat(ids.map(varint))), messageWith(0x1a, Buffer.from("i"))]),
  );
}

test("an index with millions of columns is not read", async () => {
  const manifest = await Manifest.read(fileWith(messageWith(0x0a, messageWith(0x12, Buffer.alloc(10_000_000)))));
  const heapBefore = process.memoryUsage().heapUsed;
  expect(() => indicesOf(manifest)).toThrow(isUnsupported);
  expect(process.memoryUsage().heapUsed - heapBefore).toBeLessThan(50_000_000);
});

test("indices whose columns together have a long name are not read", async () => {
  const manifest = await Manifest.read(
    fileWith(indexOf(...Array<number>(100).fill(1)), schemaField(1, 1_000, "a".repeat(100_000))),
  );
  expect(() => indicesOf(manifest)).toThrow(isUnsupported);
});

test("an index of a column in thousands of structs is not read", async () => {
  const fields = Array.from({ length: 5_000 }, (_, id) => schemaField(id + 1, id === 0 ? 100_000 : id, "a"));
  const manifest = await Manifest.read(fileWith(indexOf(5_000), ...fields));
  expect(() => indicesOf(manifest)).toThrow(isUnsupported);
  const near = await Manifest.read(fileWith(indexOf(3), ...fields));
  expect(indicesOf(near)).toMatchObject([{ name: "i", columns: ["a.a.a"] }]);
});

test("hundreds of thousands of indices are not read", async () => {
  const manifest = await Manifest.read(fileWith(Buffer.concat(Array(100_000).fill(indexOf(1)))));
  expect(() => indicesOf(manifest)).toThrow(isUnsupported);
});

test("the type of an index is derived from a long text at once", () => {
  expect(indexTypeOf("/lance.table.BTreeIndexDetails")).toBe("BTREE");
  const startMs = performance.now();
  expect(indexTypeOf("a".repeat(200_000))).toBeUndefined();
  expect(performance.now() - startMs).toBeLessThan(1_000);
});

test("a schema with hundreds of thousands of fields is not read", async () => {
  const fields = Buffer.concat(Array(100_001).fill(schemaField(1, 2, "a")));
  await expect(Manifest.read(fileWith(Buffer.alloc(0), fields))).rejects.toThrow(isUnsupported);
});

test("a column with hundreds of thousands of entries of metadata is not read", async () => {
  const entries = Buffer.concat(Array(100_001).fill(messageWith(0x52, Buffer.alloc(0))));
  const root = Buffer.concat([Buffer.from([0x20]), Buffer.alloc(9, 0xff), Buffer.from([1])]);
  const column = messageWith(0x0a, Buffer.concat([messageWith(0x12, Buffer.from("a")), root, entries]));
  const manifest = await Manifest.read(fileWith(Buffer.alloc(0), column));
  expect(() => manifest.columnMetadata).toThrow(isUnsupported);
});

test("other requests run while a manifest with millions of fragments is read", async () => {
  const fragments = Buffer.alloc(4_000_000);
  for (let at = 0; at < fragments.length; at += 2) fragments[at] = 0x12;
  let turns = 0;
  const reading = Manifest.read(fileWith(Buffer.alloc(0), fragments)).then(() => true);
  while (!(await Promise.race([reading, setImmediate(false)]))) turns += 1;
  expect(turns).toBeGreaterThan(100);
  await expect(Manifest.read(fileWith(Buffer.alloc(0), fragments, fragments, fragments))).rejects.toThrow(
    isUnsupported,
  );
});
