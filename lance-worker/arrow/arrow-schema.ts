import { CatalogError, type JsonArrowDataType, type JsonArrowSchema } from "@tiltyard/protocol";
import { type ArrowField, readFields } from "./arrow-field.ts";
import { plainZone } from "./arrow-type.ts";
import { extensionName, parseField } from "./parse-type.ts";

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

function typeOf({ type, children, dictionary }: ArrowField, dialect: Dialect): JsonArrowDataType {
  const { kind, length, [dialect]: name } = type;
  if (dialect === "lance" && dictionary !== undefined)
    return { type: `dict:${name}:${dictionary.index.lance}:${dictionary.isOrdered}` };
  const hasLength = length !== undefined && !(dialect === "lance" && kind === "decimal");
  return {
    type: name,
    ...(nested.includes(kind) && name !== "unknown" && { fields: children.map((each) => toJson(each, dialect)) }),
    ...(hasLength && { length }),
  };
}

/** Converts a type to Lance's JSON format. @throws CatalogError InvalidInput for a type without a name in Lance. */
export function toLanceType(type: JsonArrowDataType): JsonArrowDataType {
  const field = parseField({ name: "", type, nullable: true });
  const isNamed = ({ type, children, dictionary, metadata }: ArrowField): boolean =>
    type.lance !== "unknown" &&
    dictionary === undefined &&
    metadata?.[extensionName] === undefined &&
    children.every(isNamed);
  if (isNamed(field)) return withPlainZones(typeOf(field, "lance"));
  throw new CatalogError("InvalidInput", `data_type: a column cannot be changed to ${JSON.stringify(type.type)}`);
}

function withPlainZones({ type, fields, ...more }: JsonArrowDataType): JsonArrowDataType {
  return {
    type: type.replace(/(?<=^timestamp:\w+:)\S+$/, plainZone),
    ...(fields && { fields: fields.map((field) => ({ ...field, type: withPlainZones(field.type) })) }),
    ...more,
  };
}
