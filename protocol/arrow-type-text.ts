import type { JsonArrowDataType } from "./arrow.ts";

/** Returns a type as text, such as `struct<name: utf8>`, `fixed_size_list<float32, 768>` or `decimal128(12, 2)`. */
export function arrowTypeText({ type, fields = [], length }: JsonArrowDataType): string {
  if (length !== undefined && /^decimal\d+$/.test(type))
    return `${type}(${Math.floor(length / 1000)}, ${length % 1000})`;
  const inner = fields.map((field) => {
    const text = arrowTypeText(field.type);
    return type === "struct" || type === "union" ? `${field.name}: ${text}` : text;
  });
  if (length !== undefined) inner.push(String(length));
  return inner.length === 0 ? type : `${type}<${inner.join(", ")}>`;
}
