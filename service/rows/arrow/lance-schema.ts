import type { JsonArrowDataType, JsonArrowSchema } from "@tiltyard/protocol";
import type { ArrowField, ArrowType } from "./arrow-field.ts";
import { fieldWith, schemaWith } from "./arrow-schema.ts";

/** Returns the schema of an Arrow IPC file in Lance's JSON format, which LanceDB's remote client reads. */
export function readLanceSchema(file: Buffer): JsonArrowSchema {
  return schemaWith(file, typeOf);
}

function typeOf(field: ArrowField): JsonArrowDataType {
  const type = plainTypeOf(field);
  return field.index === undefined ? type : { type: `dict:${type.type}:${nameOf(field.index)}:false` };
}

function plainTypeOf({ type, children }: ArrowField): JsonArrowDataType {
  const fields = () => ({ fields: children.map((each) => fieldWith(each, typeOf)) });
  switch (type.kind) {
    case "list":
    case "struct":
    case "large_list":
      return { type: type.kind, ...fields() };
    case "fixed_size_list":
      return { type: type.kind, ...fields(), length: type.length };
    case "fixed_size_binary":
      return { type: type.kind, length: type.length };
    default:
      return { type: nameOf(type) };
  }
}

/** Returns the name of a type without fields. */
function nameOf(type: ArrowType): string {
  switch (type.kind) {
    case "int":
      return `${type.isSigned ? "int" : "uint"}${type.bits}`;
    case "float":
      return { 16: "halffloat", 32: "float", 64: "double" }[type.bits] ?? "unknown";
    case "utf8":
      return "string";
    case "large_utf8":
      return "large_string";
    case "decimal":
      return `decimal:${type.bits}:${type.precision}:${type.scale}`;
    case "date":
      return type.unit === "day" ? "date32:day" : "date64:ms";
    case "time":
      return `time${type.bits}:${type.unit}`;
    case "timestamp":
      return `timestamp:${type.unit}:${type.timezone ?? "-"}`;
    case "duration":
      return `duration:${type.unit}`;
    case "interval":
    case "map":
    case "union":
      return "unknown";
    default:
      return type.kind;
  }
}
