import { BinaryReader } from "@bufbuild/protobuf/wire";
import { quotedName } from "@tiltyard/lance-worker";
import { type Manifest, readFile, type SchemaField } from "./manifest.ts";
import { type Field, last, readable, readFields, text, unsupported } from "./protobuf.ts";

export interface ManifestIndex {
  readonly name: string;
  readonly uuid: string;
  /** The stored paths of fields, such as `docs.item.content` for a field of structs in a list. */
  readonly columns: readonly string[];
  readonly typeUrl: string;
  /** The number of separately indexed parts of the rows. */
  readonly segments: number;
}

/** The field numbers in the messages of Lance's `table.proto`. */
const ofSection = { indices: 1 } as const;
const ofIndex = { uuid: 1, fields: 2, name: 3, details: 6, base: 9 } as const;
const ofUuid = { bytes: 1 } as const;
const ofDetails = { typeUrl: 1 } as const;
/** The maximum number of fields of all indices. A forged manifest may have millions. */
const fieldsMax = 200_000;
/** The maximum number of columns of an index. */
const columnsMax = 1_000;
/** The maximum number of characters of the names, types and columns of all indices. */
const charactersMax = 4 * 1024 * 1024;
/** The maximum number of fields around a column of an index. */
const depthMax = 128;
/** The prefix of Lance's internal indices, which no user created. */
const internal = "__lance";

/** Returns the indices of a manifest by name. @throws CatalogError Unsupported */
export function indicesOf(manifest: Manifest): readonly ManifestIndex[] {
  return readable(() => indicesIn(manifest));
}

/** The ids of the folders that contain the files of indices, by the UUID of the index. Other indices are in the table's own. */
export type IndexBases = ReadonlyMap<string, number>;

/** @throws CatalogError Unsupported */
export function indexBasesOf(manifest: Manifest): IndexBases {
  return readable(() => {
    const { messages: indices, firstOf } = messagesIn(manifest);
    const bases = indices.flatMap((index) => {
      const base = last(index, ofIndex.base)?.uint32();
      return base === undefined ? [] : [[uuidOf(firstOf(index, ofIndex.uuid)), base] as const];
    });
    return new Map(bases);
  });
}

/**
 * Changes the file of a manifest in place, so that its indices have the folders of the version that it was copied from. A
 * branch that Lance 12 creates looks for all of them in the folder that it began in.
 *
 * @throws CatalogError Unsupported
 */
export function restoreIndexBases(manifest: Manifest, bases: IndexBases): void {
  readable(() => {
    const { messages: indices, firstOf } = messagesIn(manifest);
    for (const index of indices) {
      const base = bases.get(uuidOf(firstOf(index, ofIndex.uuid)));
      const value = index.findLast(({ number }) => number === ofIndex.base)?.value;
      if (base === undefined || value === undefined) continue;
      // All bytes but the last one have the continuation bit, so the length and all positions in the file remain.
      value.forEach((_, at) => {
        value[at] = ((base >>> (7 * at)) & 0x7f) | (at < value.length - 1 ? 0x80 : 0);
      });
      if (new BinaryReader(value).uint32() !== base) throw unsupported("an index has an invalid folder");
    }
  });
}

/** Returns the messages of the indices of a manifest, which have limited numbers of fields. */
function messagesIn({ file, indexSection }: Manifest) {
  const section = readFile(file).sections.find(({ start }) => start === indexSection);
  let fieldsLeft = fieldsMax;
  const read = (message: Uint8Array) => {
    const found = readFields(message, fieldsLeft);
    fieldsLeft -= found.length;
    return found;
  };
  const firstOf = (message: readonly Field[], number: number) => {
    const field = message.find((each) => each.number === number);
    return field === undefined ? [] : read(field.content);
  };
  const indices = section === undefined ? [] : read(section.content);
  const found = indices.filter(({ number }) => number === ofSection.indices).map(({ content }) => read(content));
  return { messages: found, firstOf };
}

function indicesIn(manifest: Manifest): readonly ManifestIndex[] {
  const { messages: indices, firstOf } = messagesIn(manifest);
  if (indices.length === 0) return [];
  const pathOf = pathsIn(manifest.fields);
  let charactersLeft = charactersMax;
  const all = indices.map((index) => {
    const [name, typeUrl] = [text(index, ofIndex.name), text(firstOf(index, ofIndex.details), ofDetails.typeUrl)];
    const columns = numbers(index, ofIndex.fields).map(pathOf);
    for (const { length } of [name, typeUrl, ...columns]) charactersLeft -= length;
    if (charactersLeft < 0) throw unsupported("the names of its indices and their columns are too long");
    return { name, uuid: uuidOf(firstOf(index, ofIndex.uuid)), columns, typeUrl };
  });
  const byName = Map.groupBy(
    all.filter(({ name }) => !name.startsWith(internal)),
    ({ name }) => name,
  );
  return [...byName.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : { ...first, segments: 1 + others.length },
  );
}

/** Returns a function that finds the path of a field by its id. Most fields have no index. */
function pathsIn(fields: readonly SchemaField[]): (id: number) => string {
  const byId = new Map(fields.map((field) => [field.id, field]));
  return (id) => {
    const names: string[] = [];
    for (let field = byId.get(id); field !== undefined; field = byId.get(field.parentId)) {
      if (names.length === depthMax) throw unsupported("an index has a column that is nested too deep");
      names.unshift(quoted(field.name));
    }
    return names.join(".");
  };
}

function quoted(name: string): string {
  return /^[\p{L}\p{N}_]+$/u.test(name) ? name : quotedName(name);
}

/** Reads a field of numbers, which is either packed into one value or repeated. @throws CatalogError Unsupported */
function numbers(fields: readonly Field[], number: number): number[] {
  const values: number[] = [];
  for (const field of fields) {
    if (field.number !== number) continue;
    const value = new BinaryReader(field.value);
    const reader = field.isPacked ? new BinaryReader(value.bytes()) : value;
    while (reader.pos < reader.len) {
      if (values.length === columnsMax) throw unsupported("an index has too many columns");
      values.push(reader.int32());
    }
  }
  return values;
}

function uuidOf(uuid: readonly Field[]): string {
  const hex = Buffer.from(last(uuid, ofUuid.bytes)?.bytes() ?? []).toString("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
