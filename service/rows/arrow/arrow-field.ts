import { footerOf } from "./arrow-file.ts";
import type { FlatTable } from "./flat-table.ts";

const timeUnits = ["s", "ms", "us", "ns"] as const;

/** The types of Arrow by their numbers in Schema.fbs. */
const kinds = [
  ...(["none", "null", "int", "float", "binary", "utf8", "bool", "decimal", "date", "time", "timestamp"] as const),
  ...(["interval", "list", "struct", "union", "fixed_size_binary", "fixed_size_list", "map", "duration"] as const),
  ...(["large_binary", "large_utf8", "large_list"] as const),
];
type Kind = (typeof kinds)[number];

/** A type with its names in the JSON formats of the protocol and of Lance. */
export interface ArrowType {
  readonly kind: Kind | "unknown";
  /** The name in Lance's own namespace implementations. */
  readonly protocol: string;
  /** The name that LanceDB's remote client reads. */
  readonly lance: string;
  /** The length of values with a fixed length. That of a decimal, only in the protocol, is 1000 * precision + scale. */
  readonly length?: number;
}

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
    index: dictionary && (index === undefined ? named("int", "int32") : typeOf("int", index)),
    ...metadataOf(field, 6),
  };
}

function typeOf(kind: Kind | undefined, type: FlatTable | undefined): ArrowType {
  const short = (index: number, absent = 0) => type?.short(index, absent) ?? absent;
  const int = (index: number, absent = 0) => type?.int(index, absent) ?? absent;
  const unit = (absent: number) => timeUnits[short(0, absent)] ?? "s";
  switch (kind) {
    case "int":
      return named(kind, `${type?.byte(1) === 1 ? "int" : "uint"}${int(0)}`);
    case "float":
      return named(kind, `float${16 << short(0)}`, ["halffloat", "float", "double"][short(0)] ?? "unknown");
    case "utf8":
      return named(kind, kind, "string");
    case "large_utf8":
      return named(kind, kind, "large_string");
    case "decimal": {
      const [bits, precision, scale] = [int(2, 128), int(0), int(1)];
      const length = precision * 1000 + scale;
      return { ...named(kind, `decimal${bits}`, `decimal:${bits}:${precision}:${scale}`), length };
    }
    case "date":
      return short(0, 1) === 0 ? named(kind, "date32", "date32:day") : named(kind, "date64", "date64:ms");
    case "time":
      return named(kind, `time${int(1, 32)}`, `time${int(1, 32)}:${unit(1)}`);
    case "timestamp":
      return named(kind, kind, `timestamp:${unit(0)}:${type?.text(1) ?? "-"}`);
    case "duration":
      return named(kind, kind, `duration:${unit(1)}`);
    case "fixed_size_binary":
    case "fixed_size_list":
      return { ...named(kind), length: int(0) };
    case "interval":
    case "map":
    case "union":
      return named(kind, kind, "unknown");
    case undefined:
    case "none":
      return named("unknown");
    default:
      return named(kind);
  }
}

function named(kind: ArrowType["kind"], protocol: string = kind, lance = protocol): ArrowType {
  return { kind, protocol, lance };
}

function metadataOf(of: FlatTable, index: number): Metadata {
  const entries = of.tables(index).map((entry) => [entry.text(0) ?? "", entry.text(1) ?? ""]);
  return entries.length === 0 ? {} : { metadata: Object.fromEntries(entries) };
}
