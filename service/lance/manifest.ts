import { BinaryReader } from "@bufbuild/protobuf/wire";
import { z } from "zod";
import { eachField, type Field, last, messages, readFields, text, uint, unsupported } from "./protobuf.ts";

/** The field numbers in the messages of Lance's `file.proto` and `table.proto`. */
export const ofManifest = {
  fields: 1,
  fragments: 2,
  version: 3,
  versionAuxData: 4,
  schemaMetadata: 5,
  indexSection: 6,
  timestamp: 7,
  tag: 8,
  readerFeatureFlags: 9,
  writerFeatureFlags: 10,
  maxFragmentId: 11,
  transactionFile: 12,
  writerVersion: 13,
  nextRowId: 14,
  basePaths: 18,
  transactionSection: 21,
  /** The position of the transaction in manifests of Lance 14. */
  transactionPosition: 23,
} as const;
export const ofField = { name: 2, id: 3, parentId: 4, logicalType: 5, metadata: 10 } as const;
const ofFragment = { id: 1, deletions: 3, rows: 4 } as const;
const ofDeletions = { count: 4 } as const;
/** The operations of a transaction in Lance's `transaction.proto`. The first one has the field number 100. */
const lanceOperations = [
  ...["Append", "Delete", "Overwrite", "CreateIndex", "Rewrite", "Merge", "Restore", "ReserveFragments", "Update"],
  ...["Project", "UpdateConfig", "DataReplacement", "UpdateMemWalState", "Clone", "UpdateBases", "DataOverlay"],
];
const firstOperation = 100;
const ofBasePath = { path: 4 } as const;
export const ofEntry = { key: 1, value: 2 } as const;

/** The flag of a table with stable row ids, which rows keep when they are moved or updated. Readers must know it. */
const stableRowIds = 2n;
const depthMax = 16;
/** The maximum number of sections. Lance writes three: the indices, the transaction and the manifest. */
const sectionsMax = 16;
/** The length of the footer: the position of the manifest, the version of the file format and the magic bytes. */
export const footerBytes = 16;
export const lengthBytes = 4;
const magic = "LANC";

/** Reports whether the rows of the table keep their ids between versions. @throws CatalogError Unsupported */
export function hasStableRowIds(file: Uint8Array): boolean {
  const flags = uint(manifestFields(file), ofManifest.readerFeatureFlags) ?? 0n;
  return (flags & stableRowIds) !== 0n;
}

/** Returns the highest id that any fragment of the table ever had; -1 without any. @throws CatalogError Unsupported */
export function highestFragmentOf(file: Uint8Array): number {
  return Number(uint(manifestFields(file), ofManifest.maxFragmentId) ?? -1n);
}

export interface Fragment {
  readonly id: number;
  /** The number of rows that are not deleted. */
  readonly rows: number;
}

/** Returns the fragments of a manifest. @throws CatalogError Unsupported */
export function fragmentsOf(file: Uint8Array): readonly Fragment[] {
  const number = (fields: readonly Field[], name: number) => Number(uint(fields, name) ?? 0n);
  return Array.from(messages(manifestFields(file), ofManifest.fragments), (fragment) => {
    const [deletions = []] = messages(fragment, ofFragment.deletions);
    const rows = number(fragment, ofFragment.rows) - number(deletions, ofDeletions.count);
    return { id: number(fragment, ofFragment.id), rows };
  });
}

/** The facts of a version for people. Both are undefined if the manifest does not have them. */
export interface VersionSummary {
  readonly lanceOperation: string | undefined;
  /** The number of rows that are not deleted. */
  readonly rowCount: number | undefined;
}

export const unknownSummary: VersionSummary = { lanceOperation: undefined, rowCount: undefined };

/** Returns the facts of a version. Any number of fragments is supported. */
export function summaryOf(file: Uint8Array): VersionSummary {
  if (!isLanceFile(file)) return unknownSummary;
  try {
    let lanceOperation: string | undefined;
    // The other section is a list of indices, whose field has a low number.
    for (const { content } of readFile(file).sections)
      for (const { number } of eachField(content)) lanceOperation ??= lanceOperations[number - firstOperation];
    let rowCount: number | undefined = 0;
    const reader = new BinaryReader(manifestIn(file));
    eachNumber(reader, reader.len, (number) => {
      if (number !== ofManifest.fragments) return false;
      const rows = rowsOf(reader);
      rowCount = rowCount === undefined || rows === undefined ? undefined : rowCount + rows;
      return true;
    });
    // A forged manifest may have any numbers.
    return { lanceOperation, rowCount: z.int().nonnegative().safeParse(rowCount).data };
  } catch {
    return unknownSummary;
  }
}

/** Reads the next message, which is a fragment. @returns Its number of rows; undefined for a fragment of an old writer. */
function rowsOf(reader: BinaryReader): number | undefined {
  let rows: number | undefined;
  let deleted: number | undefined = 0;
  eachNumber(reader, reader.uint32() + reader.pos, (number) => {
    if (number === ofFragment.rows) rows = reader.uint32();
    else if (number === ofFragment.deletions) {
      deleted = undefined;
      eachNumber(reader, reader.uint32() + reader.pos, (each) => {
        if (each === ofDeletions.count) deleted = reader.uint32();
        return each === ofDeletions.count;
      });
    } else return false;
    return true;
  });
  return rows === undefined || deleted === undefined ? undefined : rows - deleted;
}

/**
 * Reads the fields of a message up to `end` without an object for each, which is faster for many fragments.
 *
 * @param read Reads the value of a field; returns false to skip it.
 */
function eachNumber(reader: BinaryReader, end: number, read: (number: number) => boolean): void {
  while (reader.pos < end) {
    const [number, type] = reader.tag();
    if (!read(number)) reader.skip(type, number);
  }
}

/** The fields of a manifest on which the content of the rows does not depend. */
const fieldsIndependentOfRows: ReadonlySet<number> = new Set([
  ofManifest.fragments,
  ofManifest.version,
  ofManifest.versionAuxData,
  ofManifest.indexSection,
  ofManifest.timestamp,
  ofManifest.tag,
  ofManifest.maxFragmentId,
  ofManifest.transactionFile,
  ofManifest.writerVersion,
  ofManifest.nextRowId,
  ofManifest.transactionSection,
  ofManifest.transactionPosition,
]);

/**
 * Returns the ids of the fragments in which each of two manifests differs from the other one. All other fragments have the
 * same files and the same deleted rows. Returns undefined if the schema or anything else differs, too.
 *
 * @throws CatalogError Unsupported
 */
export function differingFragments(
  one: Uint8Array,
  other: Uint8Array,
): readonly [one: readonly number[], other: readonly number[]] | undefined {
  const [ofOne, ofOther] = [readParts(one), readParts(other)];
  // Only a forged manifest has a fragment twice.
  const hasTwice = [ofOne, ofOther].some(({ fragments, count }) => fragments.size < count);
  if (hasTwice || !ofOne.rest.equals(ofOther.rest)) return undefined;
  const idsWithout = (all: ReadonlyMap<string, number>, others: ReadonlyMap<string, number>) =>
    [...all].filter(([text]) => !others.has(text)).map(([, id]) => id);
  return [idsWithout(ofOne.fragments, ofOther.fragments), idsWithout(ofOther.fragments, ofOne.fragments)];
}

/** Returns the bytes of each fragment with its id, and those of all other fields on which the rows depend. */
function readParts(file: Uint8Array) {
  const fields = manifestFields(file);
  const messagesOfFragments = fields.filter(({ number }) => number === ofManifest.fragments);
  const fragments = new Map(
    messagesOfFragments.map((field) => {
      const [fragment = []] = messages([field], ofManifest.fragments);
      return [Buffer.from(field.bytes).toString("latin1"), Number(uint(fragment, ofFragment.id) ?? 0n)];
    }),
  );
  const rest = fields.filter(({ number }) => !fieldsIndependentOfRows.has(number)).map(({ bytes }) => bytes);
  return { fragments, count: messagesOfFragments.length, rest: Buffer.concat(rest) };
}

/** A field of the schema of a table: a column, or a field in one. */
export interface SchemaField {
  readonly id: number;
  /** Negative for a column. */
  readonly parentId: number;
  readonly name: string;
  readonly logicalType: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Returns the fields of the schema. Parents precede their children. @throws CatalogError Unsupported */
export function schemaFieldsOf(file: Uint8Array): readonly SchemaField[] {
  return Array.from(messages(manifestFields(file), ofManifest.fields), schemaFieldIn);
}

/** Returns the field of the schema that a message describes. */
export function schemaFieldIn(message: readonly Field[]): SchemaField {
  return {
    id: last(message, ofField.id)?.int32() ?? 0,
    parentId: last(message, ofField.parentId)?.int32() ?? 0,
    name: text(message, ofField.name),
    logicalType: text(message, ofField.logicalType),
    metadata: mapOf(messages(message, ofField.metadata)),
  };
}

/** Returns the metadata of each column by name. @throws CatalogError Unsupported */
export function columnMetadataOf(file: Uint8Array): ReadonlyMap<string, Readonly<Record<string, string>>> {
  const columns = schemaFieldsOf(file).filter(({ parentId }) => parentId < 0);
  return new Map(columns.map(({ name, metadata }) => [name, metadata]));
}

/** Returns the paths such as `meta.year`, columns first, except of items of lists. @throws CatalogError Unsupported */
export function columnPathsOf(file: Uint8Array): readonly string[] {
  const paths = new Map<number, { readonly path: string; readonly depth: number; readonly isList: boolean }>();
  const found: { readonly path: string; readonly depth: number }[] = [];
  for (const { id, parentId, name, logicalType } of schemaFieldsOf(file)) {
    const parent = parentId < 0 ? undefined : paths.get(parentId);
    const path = parent === undefined ? name : `${parent.path}.${name}`;
    const depth = (parent?.depth ?? 0) + 1;
    if (depth > depthMax) continue;
    paths.set(id, { path, depth, isList: /list|^map/.test(logicalType) });
    if (!parent?.isList) found.push({ path, depth });
  }
  return found.sort((one, other) => one.depth - other.depth).map(({ path }) => path);
}

/** Returns the bytes of all metadata, for any number of fragments. @throws CatalogError Unsupported */
export function metadataBytesOf(file: Uint8Array): number {
  if (!isLanceFile(file)) throw unsupported("this is not a file of Lance");
  let sum = 0;
  try {
    for (const field of eachManifestField(file))
      if (field.number === ofManifest.schemaMetadata) sum += field.bytes.length;
      else if (field.number === ofManifest.fields)
        for (const each of eachField(field.content)) if (each.number === ofField.metadata) sum += each.bytes.length;
  } catch (cause) {
    throw unsupported("it cannot be read", cause);
  }
  return sum;
}

/** Returns the metadata of the schema. @throws CatalogError Unsupported */
export function schemaMetadataOf(file: Uint8Array): Readonly<Record<string, string>> {
  return mapOf(messages(manifestFields(file), ofManifest.schemaMetadata));
}

function mapOf(entries: Iterable<readonly Field[]>): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from(entries, (each) => [text(each, ofEntry.key), text(each, ofEntry.value)]));
}

/** A part of the file. It follows its length, at which `start` points. */
export interface Section {
  readonly start: number;
  readonly content: Uint8Array;
}

/**
 * Splits a manifest file into its sections. It consists of sections and the manifest, each after its length, and a footer
 * with the position of the manifest.
 *
 * @throws CatalogError Unsupported
 */
export function readFile(file: Uint8Array): { readonly sections: readonly Section[]; readonly manifest: Section } {
  if (!isLanceFile(file)) throw unsupported("this is not a file of Lance");
  const bytes = bufferOf(file);
  const end = bytes.length - footerBytes;
  const all: Section[] = [];
  for (let start = 0; start < end; ) {
    const contentStart = start + lengthBytes;
    const content = bytes.subarray(contentStart, contentStart + bytes.readUInt32LE(start));
    all.push({ start, content });
    start = contentStart + bytes.readUInt32LE(start);
    if (start > end || all.length > sectionsMax) throw unsupported("its sections do not fill it");
  }
  const manifest = all.at(-1);
  if (manifest?.start !== positionOf(bytes)) throw unsupported("its sections do not fill it");
  return { sections: all.slice(0, -1), manifest };
}

/** Reports whether a file has the end of every Lance file. */
export function isLanceFile(file: Uint8Array): boolean {
  return (
    file.length >= footerBytes + lengthBytes && bufferOf(file.subarray(-magic.length)).toString("latin1") === magic
  );
}

/**
 * Returns the paths of folders in which a version has files. Any number of fragments is supported, and the sections
 * before the manifest are ignored, as Lance ignores them.
 *
 * @throws Error for a manifest that cannot be parsed.
 */
export function basePathsOf(file: Uint8Array): readonly string[] {
  const paths: string[] = [];
  for (const field of eachManifestField(file))
    for (const base of messages([field], ofManifest.basePaths)) paths.push(text(base, ofBasePath.path));
  return paths;
}

/** Reads the fields of the manifest in its file, one at a time, without the sections before the manifest. */
export function eachManifestField(file: Uint8Array): Generator<Field, undefined> {
  return eachField(manifestIn(file));
}

/** Returns the bytes of the manifest in its file. */
function manifestIn(file: Uint8Array): Uint8Array {
  const bytes = bufferOf(file);
  return bytes.subarray(positionOf(bytes) + lengthBytes, bytes.length - footerBytes);
}

function positionOf(bytes: Buffer): number {
  return Number(bytes.readBigUInt64LE(bytes.length - footerBytes));
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** Returns the fields of the manifest in its file. @throws CatalogError Unsupported */
function manifestFields(file: Uint8Array): readonly Field[] {
  return readFields(readFile(file).manifest.content);
}
