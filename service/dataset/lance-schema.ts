import type { JsonArrowDataType, JsonArrowSchema } from "@tiltyard/protocol";
import { footerOf } from "./arrow-file.ts";
import { fieldWith, metadataOf } from "./arrow-schema.ts";
import type { FlatTable } from "./flat-table.ts";

const units = ["s", "ms", "us", "ns"] as const;

/** The schema of an Arrow IPC file as Lance writes schemas in JSON, which LanceDB's remote client reads. */
export function readLanceSchema(file: Buffer): JsonArrowSchema {
  const schema = footerOf(file).table(1);
  return { fields: (schema?.tables(1) ?? []).map((field) => fieldWith(field, typeOf)), ...metadataOf(schema, 2) };
}

function typeOf(field: FlatTable): JsonArrowDataType {
  const dictionary = field.table(4);
  if (dictionary === undefined) return plainTypeOf(field);
  // Indices are int32 where it is not said.
  const index = dictionary.table(1);
  const name = index === undefined ? "int32" : integer(index);
  return { type: `dict:${plainTypeOf(field).type}:${name}:false` };
}

function plainTypeOf(field: FlatTable): JsonArrowDataType {
  const type = field.table(3);
  const unit = (absent: number) => units[type?.short(0, absent) ?? absent];
  const fields = () => ({ fields: field.tables(5).map((each) => fieldWith(each, typeOf)) });
  switch (field.byte(2)) {
    case 1:
      return { type: "null" };
    case 2:
      return { type: type === undefined ? "unknown" : integer(type) };
    case 3:
      return { type: ["halffloat", "float", "double"][type?.short(0) ?? 0] ?? "unknown" };
    case 4:
      return { type: "binary" };
    case 5:
      return { type: "string" };
    case 6:
      return { type: "bool" };
    case 7:
      return { type: `decimal:${type?.int(2, 128)}:${type?.int(0)}:${type?.int(1)}` };
    case 8:
      return { type: type?.short(0, 1) === 0 ? "date32:day" : "date64:ms" };
    case 9:
      return { type: `time${type?.int(1, 32)}:${unit(1)}` };
    case 10:
      return { type: `timestamp:${unit(0)}:${type?.text(1) ?? "-"}` };
    case 12:
      return { type: "list", ...fields() };
    case 13:
      return { type: "struct", ...fields() };
    case 15:
      return { type: "fixed_size_binary", length: type?.int(0) ?? 0 };
    case 16:
      return { type: "fixed_size_list", ...fields(), length: type?.int(0) ?? 0 };
    case 18:
      return { type: `duration:${unit(1)}` };
    case 19:
      return { type: "large_binary" };
    case 20:
      return { type: "large_string" };
    case 21:
      return { type: "large_list", ...fields() };
    default:
      return { type: "unknown" };
  }
}

function integer(type: FlatTable): string {
  return `${type.byte(1) === 1 ? "int" : "uint"}${type.int(0)}`;
}
