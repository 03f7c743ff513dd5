import { CatalogError, type JsonArrowDataType, type JsonArrowSchema } from "@tiltyard/protocol";
import { footerOf } from "./arrow-file.ts";
import type { FlatTable } from "./flat-table.ts";

/** The schema of an Arrow IPC file as the protocol writes schemas in JSON. */
export function readSchema(file: Buffer): JsonArrowSchema {
  const schema = footerOf(file).table(1);
  return { fields: (schema?.tables(1) ?? []).map(fieldOf), ...metadataOf(schema, 2) };
}

function fieldOf(field: FlatTable): JsonArrowSchema["fields"][number] {
  return fieldWith(field, typeOf);
}

/** A field whose type is told by the names of one kind or the other. */
export function fieldWith(
  field: FlatTable,
  typeOf: (field: FlatTable) => JsonArrowDataType,
): JsonArrowSchema["fields"][number] {
  return {
    name: field.text(0) ?? "",
    type: typeOf(field),
    nullable: field.byte(1) === 1,
    ...metadataOf(field, 6),
  };
}

/** The metadata of a field or a schema, if it has any. */
export function metadataOf(of: FlatTable | undefined, index: number) {
  const entries = (of?.tables(index) ?? []).map((entry) => [entry.text(0) ?? "", entry.text(1) ?? ""]);
  return entries.length === 0 ? {} : { metadata: Object.fromEntries(entries) };
}

/** Names and lengths are those of Lance's own namespace implementations. */
function typeOf(field: FlatTable): JsonArrowDataType {
  const type = field.table(3);
  const fields = () => ({ fields: field.tables(5).map(fieldOf) });
  switch (field.byte(2)) {
    case 1:
      return { type: "null" };
    case 2:
      return { type: `${type?.byte(1) === 1 ? "int" : "uint"}${type?.int(0)}` };
    case 3:
      return { type: `float${16 << (type?.short(0) ?? 0)}` };
    case 4:
      return { type: "binary" };
    case 5:
      return { type: "utf8" };
    case 6:
      return { type: "bool" };
    case 7:
      return { type: `decimal${type?.int(2, 128)}`, length: (type?.int(0) ?? 0) * 1000 + (type?.int(1) ?? 0) };
    case 8:
      return { type: type?.short(0, 1) === 0 ? "date32" : "date64" };
    case 9:
      return { type: `time${type?.int(1, 32)}` };
    case 10:
      return { type: "timestamp" };
    case 11:
      return { type: "interval" };
    case 12:
      return { type: "list", ...fields() };
    case 13:
      return { type: "struct", ...fields() };
    case 14:
      return { type: "union", ...fields() };
    case 15:
      return { type: "fixed_size_binary", length: type?.int(0) ?? 0 };
    case 16:
      return { type: "fixed_size_list", ...fields(), length: type?.int(0) ?? 0 };
    case 17:
      return { type: "map", ...fields() };
    case 18:
      return { type: "duration" };
    case 19:
      return { type: "large_binary" };
    case 20:
      return { type: "large_utf8" };
    case 21:
      return { type: "large_list", ...fields() };
    default:
      return { type: "unknown" };
  }
}

const inSql: Readonly<Record<string, string>> = {
  utf8: "Utf8",
  large_utf8: "LargeUtf8",
  binary: "Binary",
  large_binary: "LargeBinary",
};

/**
 * For the columns of a file, by their names: SQL that takes the values out of their dictionary,
 * undefined for a column that has none, or one whose values have no name here.
 */
export function plainColumns(file: Buffer): ReadonlyMap<string, string | undefined> {
  const fields = footerOf(file).table(1)?.tables(1) ?? [];
  return new Map(
    fields.map((field) => {
      const name = field.text(0) ?? "";
      const type = field.table(4) === undefined ? undefined : inSql[typeOf(field).type];
      return [name, type && `arrow_cast(\`${name.replaceAll("`", "``")}\`, '${type}')`];
    }),
  );
}

const sameInLance = ["null", "bool", "binary", "large_binary"];
/** Types that have no parameters in the protocol, where Lance's own names have them: `timestamp:us:UTC`. */
const withParameters = /^(time32|time64|timestamp|duration|decimal):[\w:+/-]+$/;
const inLance: Readonly<Record<string, string>> = {
  float16: "halffloat",
  float32: "float",
  float64: "double",
  utf8: "string",
  large_utf8: "large_string",
  date32: "date32:day",
  date64: "date64:ms",
};

/** A type as Lance writes it in JSON. @throws CatalogError InvalidInput for what it has no name for. */
export function toLanceType(type: JsonArrowDataType): JsonArrowDataType {
  if (sameInLance.includes(type.type) || /^u?int(8|16|32|64)$/.test(type.type)) return { type: type.type };
  // LanceDB's client writes them as Lance does.
  if (Object.values(inLance).includes(type.type) || withParameters.test(type.type)) return { type: type.type };
  const name = inLance[type.type];
  if (name !== undefined) return { type: name };
  const [, bits] = /^decimal(128|256)$/.exec(type.type) ?? [];
  if (bits !== undefined && type.length !== undefined)
    return { type: `decimal:${bits}:${Math.floor(type.length / 1000)}:${type.length % 1000}` };
  const [item] = type.fields ?? [];
  if (type.type === "fixed_size_list" && type.length !== undefined && item !== undefined)
    return { type: type.type, length: type.length, fields: [{ ...item, type: toLanceType(item.type) }] };
  throw new CatalogError("InvalidInput", `data_type: a column cannot be changed to ${JSON.stringify(type.type)}`);
}
