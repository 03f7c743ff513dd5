import { JsonArrowDataType } from "./arrow.ts";
import { jsonOrUndefined } from "./json.ts";

/** The types of values that Functions can have in LanceDB's clients. */
const plain: readonly string[] = [
  ...["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32"],
  ...["float64", "utf8", "large_utf8", "binary", "large_binary", "date32", "date64"],
];

/** The maximum number of types in a path from a column to its innermost values. */
const depthMax = 16;

/**
 * Parses the type of a value of a Function. All nested values of the result are nullable, as pyarrow creates them.
 *
 * @returns undefined for types that no value can have.
 */
export function parseFunctionType(text: string, depth = 1): JsonArrowDataType | undefined {
  if (depth > depthMax) return undefined;
  if (text.startsWith("{")) return parseJson(text);
  if (plain.includes(text)) return { type: text };
  const [, list, inner = "", length] =
    /^(list|large_list|fixed_size_list)<(.*?)(?:, ([1-9]\d{0,8}))?>$/.exec(text) ?? [];
  if (list === undefined || (list === "fixed_size_list") !== (length !== undefined)) return undefined;
  const item = parseFunctionType(inner, depth + 1);
  return item && { type: list, fields: [nullable("item", item)], ...(length && { length: Number(length) }) };
}

function parseJson(text: string): JsonArrowDataType | undefined {
  const { data } = JsonArrowDataType.safeParse(jsonOrUndefined(text));
  return data && known(data, 1);
}

/** Returns a type whose parts all are types of Functions; undefined for others. */
function known({ type, fields = [], length }: JsonArrowDataType, depth: number): JsonArrowDataType | undefined {
  if (depth > depthMax) return undefined;
  if (plain.includes(type)) return { type };
  const inner = fields.flatMap((field) => {
    const of = known(field.type, depth + 1);
    return of === undefined ? [] : [nullable(field.name, of)];
  });
  const isList = ["list", "large_list", "fixed_size_list"].includes(type);
  const hasParts = isList ? inner.length === 1 : type === "struct" && inner.length > 0;
  if (!hasParts || inner.length < fields.length || (type === "fixed_size_list") !== (length !== undefined))
    return undefined;
  return { type, fields: inner, ...(length !== undefined && { length }) };
}

function nullable(name: string, type: JsonArrowDataType) {
  return { name, type, nullable: true };
}
