import { BinaryReader } from "@bufbuild/protobuf/wire";
import { quotedName } from "@tiltyard/lance-worker";
import { type Manifest, ofManifest, readFile, type SchemaField } from "./manifest.ts";
import { type Field, last, messages, readable, readFields, text, uint, unsupported } from "./protobuf.ts";

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
/** The maximum number of bytes of the ids of an index's columns, each of which has up to ten bytes. */
const columnsBytesMax = 64 * 1024;
/** The prefix of Lance's internal indices, which no user created. */
const internal = "__lance";

/** Returns the indices of a manifest by name. @throws CatalogError Unsupported */
export function indicesOf(manifest: Manifest): readonly ManifestIndex[] {
  return readable(() => indicesIn(manifest));
}

function indicesIn({ file, fields }: Manifest): readonly ManifestIndex[] {
  const { sections, manifest } = readFile(file);
  const start = Number(uint(readFields(manifest.content), ofManifest.indexSection) ?? -1n);
  const section = sections.find((each) => each.start === start);
  if (section === undefined) return [];
  const paths = pathsOf(fields);
  const all = Array.from(messages(readFields(section.content), ofSection.indices), (index) => {
    const [uuid = []] = messages(index, ofIndex.uuid);
    const [details = []] = messages(index, ofIndex.details);
    return {
      name: text(index, ofIndex.name),
      uuid: uuidOf(uuid),
      columns: numbers(index, ofIndex.fields).map((id) => paths.get(id) ?? ""),
      typeUrl: text(details, ofDetails.typeUrl),
    };
  });
  const byName = Map.groupBy(
    all.filter(({ name }) => !name.startsWith(internal)),
    ({ name }) => name,
  );
  return [...byName.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : { ...first, segments: 1 + others.length },
  );
}

function pathsOf(fields: readonly SchemaField[]): ReadonlyMap<number, string> {
  const paths = new Map<number, string>();
  for (const { id, parentId, name } of fields) {
    const parent = paths.get(parentId);
    paths.set(id, parent === undefined ? quoted(name) : `${parent}.${quoted(name)}`);
  }
  return paths;
}

function quoted(name: string): string {
  return /^[\p{L}\p{N}_]+$/u.test(name) ? name : quotedName(name);
}

/** Reads a field of numbers, which is either packed into one value or repeated. @throws CatalogError Unsupported */
function numbers(fields: readonly Field[], number: number): number[] {
  return fields.flatMap((field) => {
    if (field.number !== number) return [];
    if (!field.isPacked) return [new BinaryReader(field.value).int32()];
    const reader = new BinaryReader(new BinaryReader(field.value).bytes());
    // A forged manifest may have millions.
    if (reader.len > columnsBytesMax) throw unsupported("an index has too many columns");
    const values: number[] = [];
    while (reader.pos < reader.len) values.push(reader.int32());
    return values;
  });
}

function uuidOf(uuid: readonly Field[]): string {
  const hex = Buffer.from(last(uuid, ofUuid.bytes)?.bytes() ?? []).toString("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
