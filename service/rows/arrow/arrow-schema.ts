import { CatalogError, type JsonArrowDataType, type JsonArrowSchema } from "@tiltyard/protocol";
import { quotedName } from "../sql-text.ts";
import { type ArrowField, plainZone, readFields } from "./arrow-field.ts";

type Dialect = "protocol" | "lance";

const nested = ["list", "large_list", "fixed_size_list", "struct", "map", "union"];

/** Returns the schema of an Arrow IPC file in the JSON format of the protocol or of Lance. */
export function readSchema(file: Buffer, dialect: Dialect = "protocol"): JsonArrowSchema {
  const { fields, ...metadata } = readFields(file);
  return { fields: fields.map((field) => toJson(field, dialect)), ...metadata };
}

function toJson(field: ArrowField, dialect: Dialect): JsonArrowSchema["fields"][number] {
  const { name, nullable, metadata } = field;
  return { name, type: typeOf(field, dialect), nullable, ...(metadata && { metadata }) };
}

function typeOf({ type, children, index }: ArrowField, dialect: Dialect): JsonArrowDataType {
  const { kind, length, [dialect]: name } = type;
  if (dialect === "lance" && index !== undefined) return { type: `dict:${name}:${index.lance}:false` };
  const hasLength = length !== undefined && !(dialect === "lance" && kind === "decimal");
  return {
    type: name,
    ...(nested.includes(kind) && name !== "unknown" && { fields: children.map((each) => toJson(each, dialect)) }),
    ...(hasLength && { length }),
  };
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
