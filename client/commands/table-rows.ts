import type { ManagementClient } from "../catalog/documented-operations.ts";
import type { CatalogAnswer } from "../catalog/operation-types.ts";

type Page = CatalogAnswer<import("@tiltyard/protocol").ManagementContracts["listTableRows"]>;
type Column = Page["columns"][number];
type Value = Page["rows"][number][number];

/** The first rows of a table, as values for programs and as texts for people. */
export interface FirstRows {
  readonly names: readonly string[];
  readonly values: readonly Readonly<Record<string, unknown>>[];
  readonly texts: readonly Readonly<Record<string, string>>[];
}

/** Reads the first rows of a version of a table, with several requests if they exceed one response. */
export async function firstRows(
  management: ManagementClient,
  id: readonly string[],
  limit: number,
): Promise<FirstRows> {
  const { columns, rows, version, ...first } = await management.listTableRows({ id, limit });
  let next = first.next_offset;
  while (next !== undefined) {
    const page = await management.listTableRows({ id, version, offset: next, limit: limit - rows.length });
    rows.push(...page.rows);
    next = page.next_offset;
  }
  const eachOf = <To>(row: Page["rows"][number], convert: (value: Value, column: Column) => To) =>
    Object.fromEntries(columns.map((column, index) => [column.name, convert(row[index] ?? null, column)]));
  return {
    names: columns.map(({ name }) => name),
    values: rows.map((row) => eachOf(row, jsonOf)),
    texts: rows.map((row) => eachOf(row, textOf)),
  };
}

/** Returns a value with its type in JSON, with the whole length if it is cut; undefined for an unsupported type. */
function jsonOf(value: Value, { type, is_shown: isShown }: Column): unknown {
  if (value === null) return isShown ? null : undefined;
  const typed = typedValue(value.text, type);
  const { length, unit } = value;
  return isCut(value) ? { value: typed, length, unit } : typed;
}

/** Returns a value as text, with a mark if it is cut. */
function textOf(value: Value, { is_shown: isShown }: Column): string {
  if (value === null) return isShown ? "" : "(not shown)";
  if (!isCut(value)) return value.text;
  const start = value.unit === "items" ? value.text.replace(/\]$/, ",") : value.text;
  return `${start} ... (${value.length} ${value.unit})`;
}

/** Reports whether a value is longer than its text. Bytes have a length in any case, and two digits each. */
function isCut({ text, length, unit }: NonNullable<Value>): boolean {
  return length !== undefined && !(unit === "bytes" && text.length + 1 === 3 * length);
}

/** Returns numbers, booleans and lists of these as such. Numbers that JSON programs round, and NaN, remain text. */
function typedValue(text: string, type: string): unknown {
  if (!/^(u?int|float|bool|null|(fixed_size_)?list<)/.test(type)) return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) ? text : value;
  } catch {
    return text;
  }
}
