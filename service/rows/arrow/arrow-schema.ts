import { CatalogError, type JsonArrowDataType, type JsonArrowSchema } from "@tiltyard/protocol";
import { quotedName } from "../sql-text.ts";
import { type ArrowField, plainZone, readFields } from "./arrow-field.ts";

/** Returns the schema of an Arrow IPC file in the JSON format of the protocol. */
export function readSchema(file: Buffer): JsonArrowSchema {
  return schemaWith(file, typeOf);
}

/** Returns the schema of an Arrow IPC file with type names of one format or another. */
export function schemaWith(file: Buffer, typeOf: (field: ArrowField) => JsonArrowDataType): JsonArrowSchema {
  const { fields, ...metadata } = readFields(file);
  return { fields: fields.map((field) => fieldWith(field, typeOf)), ...metadata };
}

export function fieldWith(
  field: ArrowField,
  typeOf: (field: ArrowField) => JsonArrowDataType,
): JsonArrowSchema["fields"][number] {
  const { name, nullable, metadata } = field;
  return { name, type: typeOf(field), nullable, ...(metadata && { metadata }) };
}

/** Returns the type of a field. Names and lengths are those of Lance's own namespace implementations. */
function typeOf({ type, children }: ArrowField): JsonArrowDataType {
  const fields = () => ({ fields: children.map((each) => fieldWith(each, typeOf)) });
  switch (type.kind) {
    case "int":
      return { type: `${type.isSigned ? "int" : "uint"}${type.bits}` };
    case "float":
      return { type: `float${type.bits}` };
    case "decimal":
      return { type: `decimal${type.bits}`, length: type.precision * 1000 + type.scale };
    case "date":
      return { type: type.unit === "day" ? "date32" : "date64" };
    case "time":
      return { type: `time${type.bits}` };
    case "fixed_size_binary":
      return { type: type.kind, length: type.length };
    case "fixed_size_list":
      return { type: type.kind, ...fields(), length: type.length };
    case "list":
    case "struct":
    case "union":
    case "map":
    case "large_list":
      return { type: type.kind, ...fields() };
    default:
      return { type: type.kind };
  }
}

const inSql: Readonly<Record<string, string>> = {
  utf8: "Utf8",
  large_utf8: "LargeUtf8",
  binary: "Binary",
  large_binary: "LargeBinary",
};

/**
 * Returns, for each column of a file by name, the SQL that replaces dictionary values by plain ones; undefined for a
 * column without a dictionary or with values of an unsupported type.
 */
export function plainColumns(file: Buffer): ReadonlyMap<string, string | undefined> {
  return new Map(
    readFields(file).fields.map(({ name, type: { kind }, index }) => {
      const type = index === undefined ? undefined : inSql[kind];
      return [name, type && `arrow_cast(${quotedName(name)}, '${type}')`];
    }),
  );
}

const sameInLance = ["null", "bool", "binary", "large_binary"];
/** Matches types without parameters in the protocol whose Lance names contain them, such as `timestamp:us:UTC`. */
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

/** Converts a type to Lance's JSON format. @throws CatalogError InvalidInput for a type without a name in Lance. */
export function toLanceType(type: JsonArrowDataType): JsonArrowDataType {
  if (sameInLance.includes(type.type) || /^u?int(8|16|32|64)$/.test(type.type)) return { type: type.type };
  // LanceDB's client already uses Lance's names.
  if (Object.values(inLance).includes(type.type) || withParameters.test(type.type))
    return { type: type.type.replace(/(?<=^timestamp:\w+:)\S+$/, plainZone) };
  const name = inLance[type.type];
  if (name !== undefined) return { type: name };
  const [, bits] = /^decimal(128|256)$/.exec(type.type) ?? [];
  if (bits !== undefined && type.length !== undefined)
    return { type: `decimal:${bits}:${Math.floor(type.length / 1000)}:${type.length % 1000}` };
  const [item] = type.fields ?? [];
  if (type.type === "fixed_size_list" && type.length !== undefined && item !== undefined)
    return { type: type.type, length: type.length, fields: [{ ...item, type: toLanceType(item.type) }] };
  if ((type.type === "list" || type.type === "large_list") && item !== undefined)
    return { type: type.type, fields: [{ ...item, type: toLanceType(item.type) }] };
  throw new CatalogError("InvalidInput", `data_type: a column cannot be changed to ${JSON.stringify(type.type)}`);
}
