import { CatalogError } from "@tiltyard/protocol";
import { readFields } from "./arrow/arrow-field.ts";
import type { ComputedColumn } from "./wire.ts";

/** Requires rows without the columns that Functions compute. @throws CatalogError InvalidInput */
export function requireNoValues(computed: readonly ComputedColumn[], file: Buffer): void {
  if (computed.length === 0) return;
  const sent = new Set(readFields(file).fields.map(({ name }) => name.toLowerCase()));
  const given = computed.find(({ column }) => sent.has(column.toLowerCase()));
  if (given !== undefined) throw new CatalogError("InvalidInput", problemOfValues(given));
}

export function problemOfValues({ column, function: name }: ComputedColumn): string {
  return `${column}: is computed by the function ${name}, so requests cannot contain its values. Omit it`;
}
