import { type JsonArrowDataType, type JsonArrowSchema, type ShownValue, shown } from "@tiltyard/protocol";
import { extensionName } from "./arrow/parse-type.ts";
import { quotedName } from "./sql-text.ts";

type Field = JsonArrowSchema["fields"][number];

/** A column as SQL that returns truncated values, with the conversion of these to displayed values. */
export interface ShownColumn {
  readonly expressions: readonly string[];
  /** Converts the values of the expressions of one row. */
  read(values: readonly unknown[]): ShownValue | null;
}

type ShownLimits = Readonly<Record<"characters" | "items", number>>;

/** The maximum number of fields of nested structs that are read for one column. */
const fieldsMax = 32;
/** The length of the largest image in Base64. */
const base64Max = Math.ceil(shown.imageBytes / 3) * 4;
/** The metadata of a column whose bytes are stored separately. A query returns only their locations. */
const blobEncoding = "lance-encoding:blob";
/** The name of the extension type of JSON, whose values are stored in a binary form. */
const jsonExtension = "lance.json";
const texts = ["utf8", "large_utf8"];
const bytes = ["binary", "large_binary", "fixed_size_binary"];
const lists = ["list", "large_list", "fixed_size_list"];
const nested = [...lists, "struct", "map"];
/** The types that JavaScript cannot read. */
const unreadable = ["large_list", "union", "interval", "unknown"];

/** The limits of a value, and the remaining number of fields of structs, which nested fields reduce. */
interface Left {
  readonly characters: number;
  readonly items: number;
  fields: number;
}

/** Returns a column; undefined if its type has no text. */
export function shownColumn(field: Field, limits: ShownLimits = shown): ShownColumn | undefined {
  const { characters, items } = limits;
  if (field.metadata?.[blobEncoding] === "true") return undefined;
  return columnOf(quotedName(field.name), field, { characters, items, fields: fieldsMax });
}

function columnOf(path: string, { type, metadata }: Field, left: Left): ShownColumn | undefined {
  const name = type.type;
  if (metadata?.[extensionName] === jsonExtension) return textColumn(`json_extract(${path}, '$')`, left);
  if (texts.includes(name)) return textColumn(path, left);
  if (bytes.includes(name)) return bytesColumn(path);
  if (lists.includes(name)) return listColumn(path, type, left);
  if (name === "struct") return structColumn(path, type, left);
  if (name === "map") return rawColumn(path, type, left);
  return { expressions: [asText(path)], read: ([value]) => (typeof value === "string" ? { text: value } : null) };
}

function textColumn(path: string, { characters }: ShownLimits): ShownColumn {
  const text = asText(path);
  return {
    expressions: [asText(`left(${text}, ${characters})`), `character_length(${text})`],
    read: ([value, length]) => {
      if (typeof value !== "string") return null;
      return Number(length) > characters
        ? { text: value, length: Number(length), unit: "characters" }
        : { text: value };
    },
  };
}

/**
 * Returns a column of bytes. They are read as Base64, which the library writes without padding, because it returns the
 * length only of texts.
 */
function bytesColumn(path: string): ShownColumn {
  const base64 = `encode(${path}, 'base64')`;
  return {
    expressions: [asText(`left(${base64}, ${base64Max})`), `octet_length(${base64})`],
    read: ([encoded, encodedLength]) => {
      if (typeof encoded !== "string") return null;
      const length = Math.floor((Number(encodedLength) * 3) / 4);
      const head = Buffer.from(encoded.slice(0, 2 * shown.bytes), "base64").subarray(0, shown.bytes);
      const image = images.find(({ signature }) => head.subarray(0, signature.length).equals(signature));
      if (image === undefined)
        return { text: head.toString("hex").replaceAll(/(..)(?=.)/g, "$1 "), length, unit: "bytes" };
      const { media_type, text } = image;
      return {
        text,
        length,
        unit: "bytes",
        ...(length <= shown.imageBytes && { image: { media_type, base64: encoded } }),
      };
    },
  };
}

/** The first bytes of image files. */
const images = [
  {
    media_type: "image/png",
    text: "PNG image",
    signature: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  },
  { media_type: "image/jpeg", text: "JPEG image", signature: Buffer.from([0xff, 0xd8, 0xff]) },
] as const;

/** Returns a column with the first items of a list. */
function listColumn(path: string, type: JsonArrowDataType, limits: ShownLimits): ShownColumn | undefined {
  const items = `array_slice(${path}, 1, ${limits.items})`;
  const inner = type.fields?.[0]?.type.type ?? "unknown";
  const column = [...nested, ...bytes].includes(inner) ? rawColumn(items, type, limits) : textColumn(items, limits);
  return (
    column && {
      expressions: [`array_length(${path})`, ...column.expressions],
      read: ([length, ...values]) => {
        const value = column.read(values);
        if (value === null || Number(length) <= limits.items) return value;
        return { text: value.text, length: Number(length), unit: "items" };
      },
    }
  );
}

/** Returns a column of structs, which are read by fields because the library cannot format a whole struct. */
function structColumn(path: string, { fields = [] }: JsonArrowDataType, left: Left): ShownColumn {
  const inner = fields.slice(0, left.fields).map((field) => {
    const { name } = field;
    left.fields -= 1;
    return { name, column: left.fields < 0 ? undefined : columnOf(`${path}.${quotedName(name)}`, field, left) };
  });
  return {
    expressions: [`${path} IS NULL`, ...inner.flatMap(({ column }) => column?.expressions ?? [])],
    read: ([isNull, ...values]) => {
      if (isNull === true) return null;
      const shownFields = readEach(
        inner.map(({ column }) => column),
        values,
      );
      const texts = inner.map(
        ({ name, column }, index) => `${name}: ${column ? (shownFields[index]?.text ?? "null") : "…"}`,
      );
      const image = shownFields.find((field) => field?.image !== undefined)?.image;
      const whole = [...texts, ...(fields.length > inner.length ? ["…"] : [])].join(", ");
      return { ...cut(`{${whole}}`, left), ...(image !== undefined && { image }) };
    },
  };
}

/** Passes each column the values of its own expressions, which are consecutive. */
export function readEach(
  columns: readonly (ShownColumn | undefined)[],
  values: readonly unknown[],
): (ShownValue | null)[] {
  let at = 0;
  return columns.map((column) => {
    if (column === undefined) return null;
    const own = values.slice(at, at + column.expressions.length);
    at += own.length;
    return column.read(own);
  });
}

/** Returns a column whose values JavaScript formats, because the library cannot. */
function rawColumn(expression: string, type: JsonArrowDataType, limits: ShownLimits): ShownColumn | undefined {
  if (!isReadable(type)) return undefined;
  return {
    expressions: [expression],
    read: ([value]) =>
      value === null || value === undefined
        ? null
        : cut(
            JSON.stringify(value, (_, each) => legible(each)),
            limits,
          ),
  };
}

function legible(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : `${value}`;
  // A float32 has eight significant digits.
  if (typeof value === "number") return Number(value.toPrecision(8));
  return ArrayBuffer.isView(value) ? `${value.byteLength} bytes` : value;
}

function isReadable(type: JsonArrowDataType): boolean {
  return !unreadable.includes(type.type) && (type.fields ?? []).every((field) => isReadable(field.type));
}

function cut(text: string, { characters }: ShownLimits): ShownValue {
  if (text.length <= characters) return { text };
  return { text: text.slice(0, characters), length: text.length, unit: "characters" };
}

const asText = (expression: string) => `arrow_cast(${expression}, 'Utf8')`;
