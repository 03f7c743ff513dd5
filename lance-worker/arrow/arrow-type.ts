import type { FlatTable } from "./flat-table.ts";

const timeUnits: readonly string[] = ["s", "ms", "us", "ns"];

/** A parameter of a type: the width of its field in Schema.fbs, and the value of an absent field. */
interface Parameter {
  readonly width: "byte" | "short" | "int" | "text";
  readonly absent: number;
}
const byte: Parameter = { width: "byte", absent: 0 };
const text: Parameter = { width: "text", absent: 0 };
const short = (absent = 0): Parameter => ({ width: "short", absent });
const int = (absent = 0): Parameter => ({ width: "int", absent });

/** The types of Arrow in the order of their numbers in Schema.fbs, with the fields of their tables. */
const layouts = {
  none: [],
  null: [],
  int: [int(), byte],
  float: [short()],
  binary: [],
  utf8: [],
  bool: [],
  decimal: [int(), int(), int(128)],
  date: [short(1)],
  time: [short(1), int(32)],
  timestamp: [short(), text],
  interval: [short()],
  list: [],
  struct: [],
  union: [short()],
  fixed_size_binary: [int()],
  fixed_size_list: [int()],
  map: [byte],
  duration: [short(1)],
  large_binary: [],
  large_utf8: [],
  large_list: [],
  run_end_encoded: [],
  binary_view: [],
  utf8_view: [],
  list_view: [],
  large_list_view: [],
} as const satisfies Readonly<Record<string, readonly Parameter[]>>;
export type Kind = keyof typeof layouts;
const kinds = Object.keys(layouts) as readonly Kind[];

/** A type with its names in the JSON formats of the protocol and of Lance. */
export interface ArrowType {
  readonly kind: Kind;
  /** The values of the fields of its table in Schema.fbs. */
  readonly parameters: readonly (number | string | undefined)[];
  /** The name in Lance's own namespace implementations, with the unit and the zone of times that those omit. */
  readonly protocol: string;
  /** The name that LanceDB's remote client reads. */
  readonly lance: string;
  /** The length of values with a fixed length. That of a decimal, only in the protocol, is 1000 * precision + scale. */
  readonly length?: number;
}

/** Returns the number of a type in Schema.fbs. */
export function numberOf(kind: Kind): number {
  return kinds.indexOf(kind);
}

/** Returns the fields of the table of a type in Schema.fbs. */
export function layoutOf(kind: Kind): readonly Parameter[] {
  return layouts[kind];
}

/** Reads the type of a field or of the indices of a dictionary. @param type Its table in Schema.fbs. */
export function readType(number: number, type: FlatTable | undefined): ArrowType {
  const kind = kinds[number] ?? "none";
  const parameters = layoutOf(kind).map(({ width, absent }, index) =>
    width === "text" ? type?.text(index) : (type?.[width](index, absent) ?? absent),
  );
  return arrowType(kind, parameters);
}

/** Returns a type with its names. @param parameters In the order of the fields of its table in Schema.fbs. */
export function arrowType(kind: Kind, parameters: ArrowType["parameters"] = []): ArrowType {
  const [first = 0, second = 0, third = 0] = parameters;
  const named = (protocol: string = kind, lance = protocol, length?: number): ArrowType => ({
    kind,
    parameters,
    protocol,
    lance,
    ...(length !== undefined && { length }),
  });
  const unit = timeUnits[Number(first)] ?? "s";
  switch (kind) {
    case "int":
      return named(`${second === 1 ? "int" : "uint"}${first}`);
    case "float":
      return named(`float${16 << Number(first)}`, ["halffloat", "float", "double"][Number(first)]);
    case "utf8":
      return named(kind, "string");
    case "large_utf8":
      return named(kind, "large_string");
    case "decimal":
      return named(`decimal${third}`, `decimal:${third}:${first}:${second}`, Number(first) * 1000 + Number(second));
    case "date":
      return first === 0 ? named("date32", "date32:day") : named("date64", "date64:ms");
    case "time":
      return named(`time${second}[${unit}]`, `time${second}:${unit}`);
    case "timestamp": {
      const zone = typeof parameters[1] === "string" ? arrowZone(parameters[1]) : undefined;
      return named(`timestamp[${unit}${zone === undefined ? "" : `, tz=${zone}`}]`, `timestamp:${unit}:${zone ?? "-"}`);
    }
    case "duration":
      return named(`duration[${unit}]`, `duration:${unit}`);
    case "fixed_size_binary":
    case "fixed_size_list":
      return named(kind, kind, Number(first));
    case "interval":
    case "map":
    case "union":
      return named(kind, "unknown");
    case "none":
    case "run_end_encoded":
    case "list_view":
    case "large_list_view":
      return named("unknown");
    default:
      return named();
  }
}

/** Returns the number of a unit of time in Schema.fbs. */
export function unitNumber(unit: string): number {
  return timeUnits.indexOf(unit);
}

// Lance 12 cannot read a zone with a colon.

/** Returns a zone in the format that Lance 12 reads: `+05:30` becomes `+0530`. */
export function plainZone(zone: string): string {
  return zone.replace(/^([+-]\d\d):(\d\d)$/, "$1$2");
}

/** Returns a zone in Arrow's own format: `+0530` becomes `+05:30`. */
export function arrowZone(zone: string): string {
  return zone.replace(/^([+-]\d\d)(\d\d)$/, "$1:$2");
}
