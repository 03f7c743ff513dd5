import { footerOf } from "./arrow-file.ts";
import type { FlatTable } from "./flat-table.ts";

const timeUnits = ["s", "ms", "us", "ns"] as const;
type TimeUnit = (typeof timeUnits)[number];

/** The types of Arrow by their numbers in Schema.fbs. */
const kinds = [
  ...(["none", "null", "int", "float", "binary", "utf8", "bool", "decimal", "date", "time", "timestamp"] as const),
  ...(["interval", "list", "struct", "union", "fixed_size_binary", "fixed_size_list", "map", "duration"] as const),
  ...(["large_binary", "large_utf8", "large_list"] as const),
];
type Kind = (typeof kinds)[number];

export type ArrowType =
  | { readonly kind: "int"; readonly bits: number; readonly isSigned: boolean }
  | { readonly kind: "float"; readonly bits: number }
  | { readonly kind: "decimal"; readonly bits: number; readonly precision: number; readonly scale: number }
  | { readonly kind: "date"; readonly unit: "day" | "ms" }
  | { readonly kind: "time"; readonly bits: number; readonly unit: TimeUnit }
  | { readonly kind: "timestamp"; readonly unit: TimeUnit; readonly timezone: string | undefined }
  | { readonly kind: "duration"; readonly unit: TimeUnit }
  | { readonly kind: "fixed_size_binary" | "fixed_size_list"; readonly length: number }
  | { readonly kind: "null" | "binary" | "utf8" | "bool" | "large_binary" | "large_utf8" }
  | { readonly kind: "list" | "struct" | "union" | "map" | "large_list" | "interval" | "unknown" };

type Metadata = { readonly metadata?: Readonly<Record<string, string>> };

export interface ArrowField extends Metadata {
  readonly name: string;
  readonly nullable: boolean;
  readonly type: ArrowType;
  readonly children: readonly ArrowField[];
  /** The type of the indices of a column with a dictionary, whose values have the type `type`. */
  readonly index: ArrowType | undefined;
}

/** Reads the fields of an Arrow IPC file and the metadata of its schema. */
export function readFields(file: Buffer): Metadata & { readonly fields: readonly ArrowField[] } {
  const schema = footerOf(file).table(1);
  return { fields: (schema?.tables(1) ?? []).map(fieldOf), ...(schema && metadataOf(schema, 2)) };
}

/**
 * Rewrites the zones of timestamps in a message with a schema to the format that Lance 12 can read: `+05:30` becomes
 * `+0530`, which is the same zone.
 */
export function writePlainZones(message: FlatTable): void {
  const visit = (field: FlatTable) => {
    const type = kinds[field.byte(2)] === "timestamp" ? field.table(3) : undefined;
    const zone = type?.text(1);
    if (zone !== undefined) type?.shorten(1, plainZone(zone));
    for (const child of field.tables(5)) visit(child);
  };
  for (const field of message.table(2)?.tables(1) ?? []) visit(field);
}

/** Returns a zone without the colon of its offset. */
export function plainZone(zone: string): string {
  return zone.replace(/^([+-]\d\d):(\d\d)$/, "$1$2");
}

/** Reads a field. The numbers are the indices of fields in the tables of Schema.fbs, the second arguments their defaults. */
export function fieldOf(field: FlatTable): ArrowField {
  const dictionary = field.table(4);
  const index = dictionary?.table(1);
  return {
    name: field.text(0) ?? "",
    nullable: field.byte(1) === 1,
    type: typeOf(kinds[field.byte(2)], field.table(3)),
    children: field.tables(5).map(fieldOf),
    // The default type of indices is int32.
    index: dictionary && (index === undefined ? { kind: "int", bits: 32, isSigned: true } : typeOf("int", index)),
    ...metadataOf(field, 6),
  };
}

function typeOf(kind: Kind | undefined, type: FlatTable | undefined): ArrowType {
  const short = (index: number, absent = 0) => type?.short(index, absent) ?? absent;
  const int = (index: number, absent = 0) => type?.int(index, absent) ?? absent;
  const unit = (absent: number) => timeUnits[short(0, absent)] ?? "s";
  switch (kind) {
    case "int":
      return { kind, bits: int(0), isSigned: type?.byte(1) === 1 };
    case "float":
      return { kind, bits: 16 << short(0) };
    case "decimal":
      return { kind, bits: int(2, 128), precision: int(0), scale: int(1) };
    case "date":
      return { kind, unit: short(0, 1) === 0 ? "day" : "ms" };
    case "time":
      return { kind, bits: int(1, 32), unit: unit(1) };
    case "timestamp":
      return { kind, unit: unit(0), timezone: type?.text(1) };
    case "duration":
      return { kind, unit: unit(1) };
    case "fixed_size_binary":
    case "fixed_size_list":
      return { kind, length: int(0) };
    case undefined:
    case "none":
      return { kind: "unknown" };
    default:
      return { kind };
  }
}

function metadataOf(of: FlatTable, index: number): Metadata {
  const entries = of.tables(index).map((entry) => [entry.text(0) ?? "", entry.text(1) ?? ""]);
  return entries.length === 0 ? {} : { metadata: Object.fromEntries(entries) };
}
