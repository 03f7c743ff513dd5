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
const ofIndex = { uuid: 1, fields: 2, name: 3, details: 6 } as const;
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

function indicesIn({ file, fields, indexSection }: Manifest): readonly ManifestIndex[] {
  const section = readFile(file).sections.find(({ start }) => start === indexSection);
  if (section === undefined) return [];
  const pathOf = pathsIn(fields);
  let [fieldsLeft, charactersLeft] = [fieldsMax, charactersMax];
  const read = (message: Uint8Array) => {
    const found = readFields(message, fieldsLeft);
    fieldsLeft -= found.length;
    return found;
  };
  const firstOf = (message: readonly Field[], number: number) => {
    const field = message.find((each) => each.number === number);
    return field === undefined ? [] : read(field.content);
  };
  const indices = read(section.content).filter(({ number }) => number === ofSection.indices);
  const all = indices.map(({ content }) => {
    const index = read(content);
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
