import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { CatalogError } from "@tiltyard/protocol";

/** The manifest of the next version, and Lance's record of its transaction. */
export interface NextManifest {
  readonly file: Uint8Array;
  readonly transaction: Uint8Array;
  /** The file name in the table's `_transactions` folder, where Lance reads the changes of a version. */
  readonly transactionFile: string;
}

export interface ReplacedMetadata {
  readonly version: number;
  readonly timestampMillis: number;
  /** The unique name of Lance's transaction. */
  readonly uuid: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The field numbers in the messages of Lance's `file.proto`, `table.proto` and `transaction.proto`. */
const ofManifest = {
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
  transactionSection: 21,
} as const;
const ofField = { name: 2, id: 3, parentId: 4, logicalType: 5, metadata: 10 } as const;
const ofFragment = { id: 1, deletions: 3, rows: 4 } as const;
const ofDeletions = { count: 4 } as const;
const ofTransaction = { readVersion: 1, uuid: 2, updateConfig: 110 } as const;
const ofUpdateConfig = { schemaMetadataUpdates: 8 } as const;
const ofUpdateMap = { entries: 1, replace: 2 } as const;
const ofTimestamp = { seconds: 1, nanos: 2 } as const;
/** The field numbers of an entry of any map. */
const ofEntry = { key: 1, value: 2 } as const;

/** The flag of a table with stable row ids, which rows keep when they are moved or updated. Readers must know it. */
const stableRowIds = 2n;
/** The flags of features that writers must know. A change of the metadata preserves all of them. */
const knownFeatureFlags = 0xffn;
/** The maximum number of fields of a message, which occupy some 100 MiB. A manifest has a field for each fragment. */
const fieldsMax = 500_000;
/** The maximum number of parts in the path of a field. */
const depthMax = 16;
/** The maximum number of sections. Lance writes three: the indices, the transaction and the manifest. */
const sectionsMax = 16;
const footerBytes = 16;
const lengthBytes = 4;
const magic = "LANC";

/**
 * Creates the manifest that follows another one, with replaced metadata of its schema, in Lance's format. Lance's
 * library for Node has no call for that. A manifest file consists of sections and the manifest, each after its length,
 * and a footer with the position of the manifest. The sections are the metadata of indices and, last, the transaction
 * of the version; the manifest contains their positions. The new transaction begins at the position of the old one, so
 * everything that this code does not know, and that differs between Lance 12 and 14, stays unchanged.
 *
 * @throws CatalogError Unsupported for a manifest with a different layout.
 */
export function replaceSchemaMetadata(file: Uint8Array, change: ReplacedMetadata): NextManifest {
  try {
    return next(file, change);
  } catch (cause) {
    if (cause instanceof CatalogError) throw cause;
    throw unsupported("it cannot be read", cause);
  }
}

/** Reports whether the rows of the table keep their ids between versions. @throws CatalogError Unsupported */
export function hasStableRowIds(file: Uint8Array): boolean {
  const flags = uint(manifestFields(file), ofManifest.readerFeatureFlags) ?? 0n;
  return (flags & stableRowIds) !== 0n;
}

/** Returns the highest id that any fragment of the table ever had; -1 without any. @throws CatalogError Unsupported */
export function highestFragmentOf(file: Uint8Array): number {
  return Number(uint(manifestFields(file), ofManifest.maxFragmentId) ?? -1n);
}

/** A part of the rows of a table, as described in its manifest. */
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

/** The fields of a manifest on which the content of the rows does not depend. */
const apartFromRows: ReadonlySet<number> = new Set([
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
  const rest = fields.filter(({ number }) => !apartFromRows.has(number)).map(({ bytes }) => bytes);
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
  return Array.from(messages(manifestFields(file), ofManifest.fields), (field) => ({
    id: last(field, ofField.id)?.int32() ?? 0,
    parentId: last(field, ofField.parentId)?.int32() ?? 0,
    name: text(field, ofField.name),
    logicalType: text(field, ofField.logicalType),
    metadata: mapOf(messages(field, ofField.metadata)),
  }));
}

/** Returns the metadata of each column by name. @throws CatalogError Unsupported */
export function columnMetadataOf(file: Uint8Array): ReadonlyMap<string, Readonly<Record<string, string>>> {
  const columns = schemaFieldsOf(file).filter(({ parentId }) => parentId < 0);
  return new Map(columns.map(({ name, metadata }) => [name, metadata]));
}

/**
 * Returns the paths of the columns and of the fields in them, such as `meta.year`, the columns first. Items of lists have
 * no path of their own.
 *
 * @throws CatalogError Unsupported
 */
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

/** Returns the metadata of the schema. @throws CatalogError Unsupported */
export function schemaMetadataOf(file: Uint8Array): Readonly<Record<string, string>> {
  return mapOf(messages(manifestFields(file), ofManifest.schemaMetadata));
}

function mapOf(entries: Iterable<readonly Field[]>): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from(entries, (each) => [text(each, ofEntry.key), text(each, ofEntry.value)]));
}

function next(file: Uint8Array, { version, timestampMillis, uuid, metadata }: ReplacedMetadata): NextManifest {
  const { sections, manifest } = readFile(file);
  const fields = readFields(manifest.content);
  const flags = uint(fields, ofManifest.writerFeatureFlags) ?? 0n;
  if ((flags & ~knownFeatureFlags) !== 0n)
    throw unsupported(`it has the feature flags ${flags}, of which some are new`);
  const readVersion = uint(fields, ofManifest.version) ?? 0n;
  const old = findTransaction(sections, fields);
  const transaction = writeTransaction(readVersion, uuid, metadata);
  const transactionFile = `${readVersion}-${uuid}.txn`;

  const replaced: readonly number[] = [
    ofManifest.version,
    ofManifest.schemaMetadata,
    ofManifest.timestamp,
    ofManifest.transactionFile,
  ];
  const writer = new BinaryWriter();
  for (const field of fields) if (!replaced.includes(field.number)) writer.raw(field.bytes);
  writer.tag(ofManifest.version, WireType.Varint).uint64(version);
  for (const [key, value] of Object.entries(metadata)) entry(writer, ofManifest.schemaMetadata, key, value);
  writer.tag(ofManifest.timestamp, WireType.LengthDelimited).fork();
  writer.tag(ofTimestamp.seconds, WireType.Varint).int64(Math.floor(timestampMillis / 1000));
  writer.tag(ofTimestamp.nanos, WireType.Varint).int32((timestampMillis % 1000) * 1_000_000);
  writer.join().tag(ofManifest.transactionFile, WireType.LengthDelimited).string(transactionFile);

  const before = [file.subarray(0, old?.start ?? manifest.start), ...(old === undefined ? [] : section(transaction))];
  const position = Buffer.alloc(8);
  position.writeBigUInt64LE(BigInt(before.reduce((bytes, part) => bytes + part.length, 0)));
  // The rest of the footer is the version of the file format.
  const parts = [...before, ...section(writer.finish()), position, file.subarray(file.length - footerBytes + 8)];
  return { file: Buffer.concat(parts), transaction, transactionFile };
}

/** A part of the file after its length. */
interface Section {
  readonly start: number;
  readonly content: Uint8Array;
}

export function readFile(file: Uint8Array): { readonly sections: readonly Section[]; readonly manifest: Section } {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const footer = bytes.subarray(-footerBytes);
  if (footer.toString("latin1", footerBytes - magic.length) !== magic) throw unsupported("this is not a file of Lance");
  const position = Number(footer.readBigUInt64LE(0));
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
  if (manifest?.start !== position) throw unsupported("its sections do not fill it");
  return { sections: all.slice(0, -1), manifest };
}

/** Returns the fields of the manifest in its file. @throws CatalogError Unsupported */
function manifestFields(file: Uint8Array): readonly Field[] {
  return readFields(readFile(file).manifest.content);
}

/** A field of a message. A manifest may have many, so each only refers to its bytes. */
export class Field {
  readonly number: number;
  /** Reports whether the value has a length: a text, a message, or packed numbers. */
  readonly isPacked: boolean;
  readonly #message: Uint8Array;
  readonly #start: number;
  readonly #valueStart: number;
  readonly #end: number;

  /** Reads the next field of a message. @param reader A reader of the same message. */
  constructor(message: Uint8Array, reader: BinaryReader) {
    this.#message = message;
    this.#start = reader.pos;
    const [number, type] = reader.tag();
    this.#valueStart = reader.pos;
    reader.skip(type, number);
    this.#end = reader.pos;
    this.number = number;
    this.isPacked = type === WireType.LengthDelimited;
  }

  /** The value after the tag. That of a text or a message begins with its length. */
  get value(): Uint8Array {
    return this.#message.subarray(this.#valueStart, this.#end);
  }

  /** The bytes including the tag. */
  get bytes(): Uint8Array {
    return this.#message.subarray(this.#start, this.#end);
  }
}

/** @throws CatalogError Unsupported for more fields than this process has memory for, which only a forged message has. */
export function readFields(message: Uint8Array): readonly Field[] {
  const reader = new BinaryReader(message);
  const fields: Field[] = [];
  while (reader.pos < reader.len) {
    if (fields.length === fieldsMax) throw unsupported(`a message has more than ${fieldsMax} fields`);
    fields.push(new Field(message, reader));
  }
  return fields;
}

export function last(fields: readonly Field[], number: number): BinaryReader | undefined {
  const field = fields.findLast((each) => each.number === number);
  return field && new BinaryReader(field.value);
}

/** Reads the messages of a field in order, one at a time. */
export function* messages(fields: readonly Field[], number: number): Generator<readonly Field[], undefined> {
  for (const field of fields) if (field.number === number) yield readFields(new BinaryReader(field.value).bytes());
}

/** Returns a text; empty without the field. */
export function text(fields: readonly Field[], number: number): string {
  return last(fields, number)?.string() ?? "";
}

export function uint(fields: readonly Field[], number: number): bigint | undefined {
  const reader = last(fields, number);
  return reader && BigInt(reader.uint64());
}

/** Returns the section of the version's transaction; undefined if the transaction is only in a separate file. */
function findTransaction(sections: readonly Section[], manifest: readonly Field[]): Section | undefined {
  const indexStart = uint(manifest, ofManifest.indexSection);
  const others = sections.filter(({ start }) => BigInt(start) !== indexStart);
  if (indexStart !== undefined && others.length === sections.length) throw unsupported("its indices are not in it");
  const [transaction] = others;
  if (transaction === undefined) return undefined;
  const uuid = last(readFields(transaction.content), ofTransaction.uuid)?.string();
  const isTransaction =
    uuid !== undefined && last(manifest, ofManifest.transactionFile)?.string().endsWith(`-${uuid}.txn`) === true;
  if (others.length > 1 || transaction !== sections.at(-1) || !isTransaction)
    throw unsupported("it has a section that is neither its indices nor its transaction");
  return transaction;
}

/** Writes the record that a concurrent writer reads to rebase its own commit. */
function writeTransaction(readVersion: bigint, uuid: string, metadata: Readonly<Record<string, string>>): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(ofTransaction.readVersion, WireType.Varint).uint64(readVersion);
  writer.tag(ofTransaction.uuid, WireType.LengthDelimited).string(uuid);
  writer.tag(ofTransaction.updateConfig, WireType.LengthDelimited).fork();
  writer.tag(ofUpdateConfig.schemaMetadataUpdates, WireType.LengthDelimited).fork();
  for (const [key, value] of Object.entries(metadata)) entry(writer, ofUpdateMap.entries, key, value);
  writer.tag(ofUpdateMap.replace, WireType.Varint).bool(true);
  return writer.join().join().finish();
}

function entry(writer: BinaryWriter, number: number, key: string, value: string): void {
  writer.tag(number, WireType.LengthDelimited).fork();
  writer.tag(ofEntry.key, WireType.LengthDelimited).string(key);
  writer.tag(ofEntry.value, WireType.LengthDelimited).string(value);
  writer.join();
}

function section(content: Uint8Array): readonly Uint8Array[] {
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(content.length);
  return [length, content];
}

function unsupported(why: string, cause?: unknown): CatalogError {
  return new CatalogError("Unsupported", `this catalog does not know how the table's manifest is laid out: ${why}`, {
    cause,
  });
}
