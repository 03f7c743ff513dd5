import { CatalogError, type JsonArrowDataType, type JsonArrowSchema, ownValue } from "@tiltyard/protocol";
import type { ArrowField } from "./arrow-field.ts";
import { type ArrowType, arrowType, type Kind, unitNumber } from "./arrow-type.ts";

/** A type with the metadata that an extension of Arrow adds to its field. */
type TypedField = Pick<ArrowField, "type" | "children" | "dictionary" | "metadata">;

const one = (kind: Kind, ...parameters: ArrowType["parameters"]): TypedField => ({
  type: arrowType(kind, parameters),
  children: [],
});
const of = (kind: Kind, children: readonly ArrowField[], ...parameters: ArrowType["parameters"]): TypedField => ({
  ...one(kind, ...parameters),
  children,
});

/** The types without parameters, by their names in the protocol, in Lance and in pyarrow. */
const plain: Readonly<Record<string, TypedField>> = {
  null: one("null"),
  bool: one("bool"),
  float16: one("float", 0),
  halffloat: one("float", 0),
  float32: one("float", 1),
  float: one("float", 1),
  float64: one("float", 2),
  double: one("float", 2),
  utf8: one("utf8"),
  string: one("utf8"),
  large_utf8: one("large_utf8"),
  large_string: one("large_utf8"),
  string_view: one("utf8_view"),
  binary: one("binary"),
  large_binary: one("large_binary"),
  binary_view: one("binary_view"),
  ...Object.fromEntries(["date32", "date32:day", "date32[day]"].map((name) => [name, one("date", 0)])),
  ...Object.fromEntries(["date64", "date64:ms", "date64[ms]"].map((name) => [name, one("date", 1)])),
};

/** The types with parameters, also by their names in the protocol, in Lance and in pyarrow. */
const parameterized: readonly (readonly [RegExp, (...found: string[]) => TypedField])[] = [
  [/^(u?)int(8|16|32|64)$/, (unsigned, bits) => one("int", Number(bits), unsigned ? 0 : 1)],
  [/^time(32)(?:\[(s|ms)\]|:(s|ms))$/, timeOf],
  [/^time(64)(?:\[(us|ns)\]|:(us|ns))$/, timeOf],
  [/^timestamp\[(s|ms|us|ns)(?:, tz=([^\]]+))?\]$/, (unit = "", zone) => one("timestamp", unitNumber(unit), zone)],
  [
    /^timestamp:(s|ms|us|ns):(\S+)$/,
    (unit = "", zone) => one("timestamp", unitNumber(unit), zone === "-" ? undefined : zone),
  ],
  [/^duration(?:\[(s|ms|us|ns)\]|:(s|ms|us|ns))$/, (unit, other = "") => one("duration", unitNumber(unit ?? other))],
  [/^decimal(128|256)\((\d+), (-?\d+)\)$/, decimalOf],
  [/^decimal:(128|256):(\d+):(-?\d+)$/, decimalOf],
  [/^fixed_size_binary(?:\[|:)(\d+)\]?$/, (length) => one("fixed_size_binary", Number(length))],
];

function timeOf(bits?: string, unit?: string, other = ""): TypedField {
  return one("time", unitNumber(unit ?? other), Number(bits));
}

function decimalOf(bits?: string, precision?: string, scale?: string): TypedField {
  return one("decimal", Number(precision), Number(scale), Number(bits));
}

/** The metadata of a field whose values have an extension type. */
export const extensionName = "ARROW:extension:name";
const extensionMetadata = "ARROW:extension:metadata";

/** The extensions of Arrow without parameters, by their names in pyarrow, with the types of their values. */
const extensions: Readonly<Record<string, TypedField>> = {
  "arrow.uuid": extension("arrow.uuid", one("fixed_size_binary", 16)),
  "arrow.json": extension("arrow.json", one("utf8")),
  "arrow.bool8": extension("arrow.bool8", one("int", 8, 1)),
};

function extension(name: string, storage: TypedField, metadata = ""): TypedField {
  return { ...storage, metadata: { [extensionName]: name, [extensionMetadata]: metadata } };
}

type JsonField = JsonArrowSchema["fields"][number];

/** Returns a field in JSON as a field of Arrow. @throws CatalogError InvalidInput for a type that columns cannot have. */
export function parseField({ name, type, nullable, metadata }: JsonField): ArrowField {
  const typed = parseType(type);
  return { name, nullable, ...typed, ...(metadata && { metadata: { ...typed.metadata, ...metadata } }) };
}

function parseType(json: JsonArrowDataType): TypedField {
  const { type: name, length } = json;
  const children = json.fields?.map(parseField);
  const [item] = children ?? [];
  if (children !== undefined && name === "struct") return of("struct", children);
  if (item !== undefined && (name === "list" || name === "large_list")) return of(name, [item]);
  if (item !== undefined && name === "map") return of("map", [item], 0);
  if (item !== undefined && name === "fixed_size_list" && length !== undefined) return of(name, [item], length);
  if (length !== undefined && name === "fixed_size_binary") return one(name, length);
  const [, bits] = /^decimal(128|256)$/.exec(name) ?? [];
  if (length !== undefined && bits !== undefined)
    return decimalOf(bits, String(Math.floor(length / 1000)), String(length % 1000));
  const text = new TypeText(name);
  const typed = text.type();
  if (!text.isAtEnd) throw unknownType(name);
  return typed;
}

/** A type as pyarrow writes it, which Geneva's client sends: `map<string, list<item: int64>>`. */
class TypeText {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length;
  }

  type(): TypedField {
    if (this.#takes("extension<")) return this.#extension();
    if (this.#takes("dictionary<values=")) return this.#dictionary();
    if (this.#takes("map<")) return this.#map();
    if (this.#takes("struct<")) return this.#struct();
    const [, list] = this.#match(/(list|large_list|fixed_size_list)</y) ?? [];
    if (list !== undefined) return this.#list(list);
    const [name = ""] = this.#match(/\w+(?::[\w:+/-]+)?(?:\[[^\]]*\]|\([^)]*\))?/y) ?? [];
    const found = ownValue(plain, name);
    if (found !== undefined) return found;
    for (const [pattern, read] of parameterized) {
      const match = pattern.exec(name);
      if (match !== null) return read(...match.slice(1));
    }
    throw unknownType(this.#text);
  }

  #field(): ArrowField {
    const [, name = ""] = this.#match(/(.*?): /y) ?? this.#fail();
    const typed = this.type();
    return { name, nullable: !this.#takes(" not null"), ...typed };
  }

  #struct(): TypedField {
    const fields: ArrowField[] = [];
    if (!this.#takes(">")) {
      do fields.push(this.#field());
      while (this.#takes(", "));
      this.#require(">");
    }
    return of("struct", fields);
  }

  #list(kind: string): TypedField {
    const item = this.#field();
    this.#require(">");
    if (kind !== "fixed_size_list") return of(kind === "list" ? "list" : "large_list", [item]);
    return of("fixed_size_list", [item], Number(this.#need(/\[(\d+)\]/y)));
  }

  #map(): TypedField {
    const key = { name: "key", nullable: false, ...this.type() };
    this.#require(", ");
    const value = { name: "value", nullable: true, ...this.type() };
    const isSorted = this.#takes(", keys_sorted");
    this.#require(">");
    const entries = { name: "entries", nullable: false, ...of("struct", [key, value]) };
    return of("map", [entries], Number(isSorted));
  }

  #dictionary(): TypedField {
    const values = this.type();
    this.#require(", indices=");
    const { type: index } = this.type();
    const isOrdered = this.#need(/, ordered=([01])>/y) === "1";
    return { ...values, dictionary: { index, isOrdered } };
  }

  #extension(): TypedField {
    if (this.#takes("arrow.fixed_shape_tensor[value_type=")) return this.#tensor();
    const [, found] = Object.entries(extensions).find(([name]) => this.#takes(`${name}>`)) ?? [];
    return found ?? this.#fail();
  }

  #tensor(): TypedField {
    const values = this.type();
    const shape = this.#need(/, shape=\[([\d,]+)\]/y)
      .split(",")
      .map(Number);
    const [, dimensions] = this.#match(/, dim_names=\[([^\]]*)\]/y) ?? [];
    this.#require("]>");
    const metadata = {
      shape,
      ...(dimensions !== undefined && { dim_names: dimensions.split(",") }),
    };
    const length = shape.reduce((product, size) => product * size, 1);
    const item = { name: "item", nullable: true, ...values };
    return extension("arrow.fixed_shape_tensor", of("fixed_size_list", [item], length), JSON.stringify(metadata));
  }

  #takes(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #require(text: string): void {
    if (!this.#takes(text)) this.#fail();
  }

  /** Returns the group of a pattern. */
  #need(pattern: RegExp): string {
    return this.#match(pattern)?.[1] ?? this.#fail();
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at = pattern.lastIndex;
    return match;
  }

  #fail(): never {
    throw unknownType(this.#text);
  }
}

function unknownType(name: string): CatalogError {
  return new CatalogError("InvalidInput", `data_type: no column can have the type ${JSON.stringify(name)}`);
}
