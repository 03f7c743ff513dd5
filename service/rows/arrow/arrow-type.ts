import { CatalogError, type JsonArrowDataType } from "@tiltyard/protocol";
import type { DataType, Field } from "apache-arrow";
import { plainZone } from "./arrow-field.ts";

type Arrow = typeof import("apache-arrow");

/** The types without parameters, by their names in the protocol, in Lance and in Arrow's own libraries. */
const plain = (arrow: Arrow): Readonly<Record<string, () => DataType>> => ({
  null: () => new arrow.Null(),
  bool: () => new arrow.Bool(),
  int8: () => new arrow.Int8(),
  int16: () => new arrow.Int16(),
  int32: () => new arrow.Int32(),
  int64: () => new arrow.Int64(),
  uint8: () => new arrow.Uint8(),
  uint16: () => new arrow.Uint16(),
  uint32: () => new arrow.Uint32(),
  uint64: () => new arrow.Uint64(),
  float16: () => new arrow.Float16(),
  float32: () => new arrow.Float32(),
  float64: () => new arrow.Float64(),
  halffloat: () => new arrow.Float16(),
  float: () => new arrow.Float32(),
  double: () => new arrow.Float64(),
  utf8: () => new arrow.Utf8(),
  string: () => new arrow.Utf8(),
  large_utf8: () => new arrow.LargeUtf8(),
  large_string: () => new arrow.LargeUtf8(),
  binary: () => new arrow.Binary(),
  large_binary: () => new arrow.LargeBinary(),
  date32: () => new arrow.DateDay(),
  date64: () => new arrow.DateMillisecond(),
  "date32[day]": () => new arrow.DateDay(),
  "date64[ms]": () => new arrow.DateMillisecond(),
});

/** Returns an Arrow stream with these columns and without rows. */
export function emptyStream(arrow: Arrow, fields: readonly Field[]): ReadableStream<Uint8Array> {
  return new Blob([arrow.tableToIPC(new arrow.Table(new arrow.Schema([...fields])), "stream")]).stream();
}

/** Adds metadata to the schema of an Arrow stream. @returns A stream without rows. */
export async function withMetadata(schema: Blob, metadata: Readonly<Record<string, string>>): Promise<Blob> {
  const arrow = await import("apache-arrow");
  const { fields, metadata: present } = arrow.tableFromIPC(new Uint8Array(await schema.arrayBuffer())).schema;
  const all = new Map([...present, ...Object.entries(metadata)]);
  return new Blob([arrow.tableToIPC(new arrow.Table(new arrow.Schema(fields, all)), "stream")]);
}

const units = ["s", "ms", "us", "ns"];

/**
 * Converts a type in JSON to Arrow's type.
 *
 * @throws CatalogError InvalidInput for a type that columns cannot have.
 */
export function toArrowType(arrow: Arrow, type: JsonArrowDataType): DataType {
  const simple = plain(arrow)[type.type];
  if (simple !== undefined) return simple();
  const item = type.fields?.[0];
  if (type.type === "list" && item !== undefined) return new arrow.List(toArrowField(arrow, item));
  if (type.type === "struct" && type.fields !== undefined)
    return new arrow.Struct(type.fields.map((field) => toArrowField(arrow, field)));
  if (type.type === "fixed_size_list" && item !== undefined && type.length !== undefined)
    return new arrow.FixedSizeList(type.length, toArrowField(arrow, item));
  if (type.type === "fixed_size_binary" && type.length !== undefined) return new arrow.FixedSizeBinary(type.length);
  const [, unit, zone] = /^timestamp\[(s|ms|us|ns)(?:, tz=([^\]]+))?\]$/.exec(type.type) ?? [];
  if (unit !== undefined) return new arrow.Timestamp(units.indexOf(unit), zone === undefined ? null : plainZone(zone));
  const [, precision, scale] = /^decimal128\((\d+), (\d+)\)$/.exec(type.type) ?? [];
  if (precision !== undefined) return new arrow.Decimal(Number(scale), Number(precision), 128);
  throw new CatalogError(
    "InvalidInput",
    `data_type: no column can be added with the type ${JSON.stringify(type.type)}`,
  );
}

function toArrowField(
  arrow: Arrow,
  { name, type, nullable }: { readonly name: string; readonly type: JsonArrowDataType; readonly nullable: boolean },
): Field {
  return new arrow.Field(name, toArrowType(arrow, type), nullable);
}
