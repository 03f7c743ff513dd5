import { setImmediate } from "node:timers/promises";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { z } from "zod";
import {
  asUnsupported,
  eachField,
  type Field,
  messages,
  readable,
  readFields,
  text,
  uint,
  unsupported,
} from "./protobuf.ts";

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
  dataFormat: 15,
  basePaths: 18,
  transactionSection: 21,
  /** The position of the transaction in manifests of Lance 14. */
  transactionPosition: 23,
} as const;
export const ofField = { name: 2, id: 3, parentId: 4, logicalType: 5, metadata: 10 } as const;
const ofDataFormat = { version: 2 } as const;
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
/** The maximum number of folders with files of a version. Each request for its rows looks up their owners. */
const basesMax = 1_000;
/** The maxima of a manifest. One with more is forged: a file has a hundred bytes, and a request waits for its schema. */
const fragmentsMax = 5_000_000;
const listedFragmentsMax = 500_000;
const schemaFieldsMax = 100_000;
const metadataMax = 100_000;
/** The number of fields that are read within some milliseconds. Other requests run between these steps. */
const stepFields = 10_000;
/** The maximum number of fields of a section in which the transaction is looked for. */
const sectionFieldsMax = 10_000;
/** The maximum number of sections. Lance writes three: the indices, the transaction and the manifest. */
const sectionsMax = 16;
/** The length of the footer: the position of the manifest, the version of the file format and the magic bytes. */
export const footerBytes = 16;
export const lengthBytes = 4;
const magic = "LANC";

export interface Fragment {
  readonly id: number;
  /** The number of rows that are not deleted. */
  readonly rows: number;
}

/**
 * A manifest, which is read in one pass. Sections before the manifest are ignored, as Lance ignores them. A file of
 * another format has no base paths, rows, operation and metadata of the schema; its other properties, like all of a
 * manifest that cannot be read, throw CatalogError Unsupported.
 */
export class Manifest {
  readonly file: Uint8Array;
  readonly isLance: boolean;
  /** The paths of folders in which the version has files. */
  readonly basePaths: readonly string[];
  /** The number of rows that are not deleted; undefined if the manifest does not have it. */
  readonly rowCount: number | undefined;
  /** The fields except the fragments. */
  readonly #fields: readonly Field[];

  private constructor(file: Uint8Array, fields: readonly Field[], rows: number | undefined) {
    this.file = file;
    this.isLance = isLanceFile(file);
    this.#fields = fields;
    const bases = fields.filter(({ number }) => number === ofManifest.basePaths);
    if (bases.length > basesMax) throw unsupported(`it names more than ${basesMax} folders`);
    this.basePaths = readable(() => bases.map(({ content }) => text(readFields(content), ofBasePath.path)));
    // A forged manifest may have any numbers.
    this.rowCount = this.isLance ? z.int().nonnegative().safeParse(rows).data : undefined;
  }

  /** Reads a manifest. Other requests run meanwhile. @throws CatalogError Unsupported */
  static async read(file: Uint8Array): Promise<Manifest> {
    const fields: Field[] = [];
    let [fragments, schemaFields] = [0, 0];
    let rows: number | undefined = 0;
    await eachSlowly(file, (field) => {
      if (field.number === ofManifest.fragments) {
        if (++fragments > fragmentsMax) throw unsupported(`it has more than ${fragmentsMax} fragments`);
        const { rows: own, deleted } = fragmentOf(field) ?? {};
        // An old writer does not write both numbers.
        rows = rows === undefined || own === undefined || deleted === undefined ? undefined : rows + own - deleted;
        return;
      }
      if (field.number === ofManifest.fields && ++schemaFields > schemaFieldsMax)
        throw unsupported(`its schema has more than ${schemaFieldsMax} fields`);
      if (fields.push(field) > 2 * schemaFieldsMax) throw unsupported("it has too many fields");
    });
    return new Manifest(file, fields, rows);
  }

  get #required(): readonly Field[] {
    if (!this.isLance) throw notLance();
    return this.#fields;
  }

  /** The operation of the version's transaction; undefined if the file does not have it. */
  get lanceOperation(): string | undefined {
    try {
      // The other section is a list of indices, whose field has a low number.
      const numbers = readFile(this.file).sections.flatMap(({ content }) =>
        readFields(content, sectionFieldsMax).map(({ number }) => number),
      );
      return lanceOperations[(numbers.find((number) => number >= firstOperation) ?? 0) - firstOperation];
    } catch {
      // The sections are not needed to read the version.
      return undefined;
    }
  }

  /** The fields of the schema. Parents precede their children. */
  get fields(): readonly SchemaField[] {
    const fields = this.#required.filter(({ number }) => number === ofManifest.fields);
    return readable(() => fields.map(({ content }) => new SchemaField(content)));
  }

  /** The metadata of each column by name. */
  get columnMetadata(): ReadonlyMap<string, Readonly<Record<string, string>>> {
    const columns = this.fields.filter(({ parentId }) => parentId < 0);
    let left = metadataMax;
    return readable(
      () =>
        new Map(
          columns.map((column) => {
            const metadata = column.metadataWithin(left);
            left -= Object.keys(metadata).length;
            return [column.name, metadata];
          }),
        ),
    );
  }

  get schemaMetadata(): Readonly<Record<string, string>> {
    return readable(() => mapOf(this.#fields, ofManifest.schemaMetadata, metadataMax));
  }

  /** The number of bytes of all metadata of the schema and its fields. */
  get metadataBytes(): number {
    const bytesOf = (fields: readonly Field[], wanted: number) =>
      fields.reduce((sum, { number, bytes }) => sum + (number === wanted ? bytes.length : 0), 0);
    return readable(() => {
      let sum = bytesOf(this.#required, ofManifest.schemaMetadata);
      for (const field of messages(this.#required, ofManifest.fields)) sum += bytesOf(field, ofField.metadata);
      return sum;
    });
  }

  /** Reports whether the rows of the table keep their ids between versions. */
  get hasStableRowIds(): boolean {
    const flags = readable(() => uint(this.#required, ofManifest.readerFeatureFlags)) ?? 0n;
    return (flags & stableRowIds) !== 0n;
  }

  /** The highest id that any fragment of the table ever had; -1 without any. */
  get highestFragment(): number {
    return Number(readable(() => uint(this.#required, ofManifest.maxFragmentId)) ?? -1n);
  }

  /** The version of the format of the table's data files, such as `2.1`; empty if the manifest does not have it. */
  get fileVersion(): string {
    return readable(() => {
      const [format = []] = messages(this.#fields, ofManifest.dataFormat);
      return text(format, ofDataFormat.version);
    });
  }

  /** The position of the section with the indices; undefined without indices. */
  get indexSection(): number | undefined {
    const position = readable(() => uint(this.#required, ofManifest.indexSection));
    return position === undefined ? undefined : Number(position);
  }

  /** Reads the fragments. Other requests run meanwhile. @throws CatalogError Unsupported for more than memory allows. */
  async readFragments(): Promise<readonly Fragment[]> {
    const all: Fragment[] = [];
    await eachSlowly(this.file, (field) => {
      if (field.number !== ofManifest.fragments) return;
      if (all.length === listedFragmentsMax) throw unsupported(`it has more than ${listedFragmentsMax} fragments`);
      const fragment = fragmentOf(field);
      if (fragment === undefined) throw unsupported("it cannot be read: it has an invalid fragment");
      all.push({ id: fragment.id, rows: (fragment.rows ?? 0) - (fragment.deleted ?? 0) });
    });
    return all;
  }
}

/** Visits the fields of a manifest in its file, with a pause for other requests between steps. */
async function eachSlowly(file: Uint8Array, visit: (field: Field) => void): Promise<void> {
  if (!isLanceFile(file)) return;
  let count = 0;
  try {
    for (const field of eachField(manifestIn(file))) {
      visit(field);
      if (++count % stepFields === 0) await setImmediate();
    }
  } catch (cause) {
    throw asUnsupported(cause);
  }
}

/** Returns the id and the numbers of rows of a fragment as far as it has them; undefined for one that cannot be read. */
function fragmentOf(fragment: Field) {
  try {
    let id = 0;
    let rows: number | undefined;
    let deleted: number | undefined = 0;
    eachNumber(fragment.content, (number, reader) => {
      if (number === ofFragment.id) id = Number(reader.uint64());
      else if (number === ofFragment.rows) rows = reader.uint32();
      else if (number === ofFragment.deletions) {
        deleted = undefined;
        eachNumber(reader.bytes(), (each, inner) => {
          if (each === ofDeletions.count) deleted = inner.uint32();
          return each === ofDeletions.count;
        });
      } else return false;
      return true;
    });
    return { id, rows, deleted };
  } catch {
    return undefined;
  }
}

/**
 * Reads the fields of a message without an object for each, which is faster for many fragments.
 *
 * @param read Reads the value of a field; returns false to skip it.
 */
function eachNumber(message: Uint8Array, read: (number: number, reader: BinaryReader) => boolean): void {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (!read(number, reader)) reader.skip(type, number);
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
  const [ofOne, ofOther] = readable(() => [readParts(one), readParts(other)] as const);
  // Only a forged manifest has a fragment twice.
  const hasTwice = [ofOne, ofOther].some(({ fragments, count }) => fragments.size < count);
  if (hasTwice || !ofOne.rest.equals(ofOther.rest)) return undefined;
  const idsWithout = (all: ReadonlyMap<string, number>, others: ReadonlyMap<string, number>) =>
    [...all].filter(([text]) => !others.has(text)).map(([, id]) => id);
  return [idsWithout(ofOne.fragments, ofOther.fragments), idsWithout(ofOther.fragments, ofOne.fragments)];
}

/** Returns the bytes of each fragment with its id, and those of all other fields on which the rows depend. */
function readParts(file: Uint8Array) {
  const fields = readFields(readFile(file).manifest.content);
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

/** A field of the schema of a table: a column, or a field in one. A table may have many, and each request reads them. */
export class SchemaField {
  readonly id: number;
  /** Negative for a column. */
  readonly parentId: number;
  readonly name: string;
  readonly logicalType: string;
  readonly #message: Uint8Array;

  constructor(message: Uint8Array) {
    let [id, parentId, name, logicalType] = [0, 0, "", ""];
    eachNumber(message, (number, reader) => {
      if (number === ofField.id) id = reader.int32();
      else if (number === ofField.parentId) parentId = reader.int32();
      else if (number === ofField.name) name = reader.string();
      else if (number === ofField.logicalType) logicalType = reader.string();
      else return false;
      return true;
    });
    this.id = id;
    this.parentId = parentId;
    this.name = name;
    this.logicalType = logicalType;
    this.#message = message;
  }

  /** Returns the metadata. @throws CatalogError Unsupported for more than `most` entries. */
  metadataWithin(most: number): Readonly<Record<string, string>> {
    return mapOf(readFields(this.#message), ofField.metadata, most);
  }
}

/** Returns the paths such as `meta.year`, columns first, except of items of lists. */
export function columnPathsOf({ fields }: Manifest): readonly string[] {
  const paths = new Map<number, { readonly path: string; readonly depth: number; readonly isList: boolean }>();
  const found: { readonly path: string; readonly depth: number }[] = [];
  for (const { id, parentId, name, logicalType } of fields) {
    const parent = parentId < 0 ? undefined : paths.get(parentId);
    const path = parent === undefined ? name : `${parent.path}.${name}`;
    const depth = (parent?.depth ?? 0) + 1;
    if (depth > depthMax) continue;
    paths.set(id, { path, depth, isList: /list|^map/.test(logicalType) });
    if (!parent?.isList) found.push({ path, depth });
  }
  return found.sort((one, other) => one.depth - other.depth).map(({ path }) => path);
}

function mapOf(fields: readonly Field[], number: number, most: number): Readonly<Record<string, string>> {
  const entries = fields.filter((field) => field.number === number);
  if (entries.length > most) throw unsupported("it has too much metadata");
  return Object.fromEntries(
    Array.from(messages(entries, number), (each) => [text(each, ofEntry.key), text(each, ofEntry.value)]),
  );
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
  if (!isLanceFile(file)) throw notLance();
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

function notLance(): Error {
  return unsupported("this is not a file of Lance");
}

/** Reports whether a file has the end of every Lance file. */
function isLanceFile(file: Uint8Array): boolean {
  return (
    file.length >= footerBytes + lengthBytes && bufferOf(file.subarray(-magic.length)).toString("latin1") === magic
  );
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
