import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { CatalogError } from "@tiltyard/protocol";

/** The maximum number of fields of a message, which occupy some 100 MiB. A manifest has a field for each fragment. */
const fieldsMax = 500_000;

/** A field of a message. A manifest may have many, so each only refers to its bytes. */
export class Field {
  readonly number: number;
  /** Reports whether the value has a length: a text, a message, or packed numbers. */
  readonly isPacked: boolean;
  readonly #message: Uint8Array;
  readonly #start: number;
  readonly #valueStart: number;
  readonly #end: number;

  /** Reads the next field of a message. @param reader A reader of the same message. */
  constructor(message: Uint8Array, reader: BinaryReader) {
    this.#message = message;
    this.#start = reader.pos;
    const [number, type] = reader.tag();
    this.#valueStart = reader.pos;
    reader.skip(type, number);
    this.#end = reader.pos;
    this.number = number;
    this.isPacked = type === WireType.LengthDelimited;
  }

  /** The value after the tag. That of a text or a message begins with its length. */
  get value(): Uint8Array {
    return this.#message.subarray(this.#valueStart, this.#end);
  }

  get content(): Uint8Array {
    return new BinaryReader(this.value).bytes();
  }

  get bytes(): Uint8Array {
    return this.#message.subarray(this.#start, this.#end);
  }
}

/** Reads the fields of a message. @throws CatalogError Unsupported for more fields than memory allows, or than `most`. */
export function readFields(message: Uint8Array, most = fieldsMax): readonly Field[] {
  const fields: Field[] = [];
  for (const field of eachField(message)) {
    if (fields.length === most) throw unsupported(`a message has more than ${most} fields`);
    fields.push(field);
  }
  return fields;
}

/** Reads the fields of a message one at a time. */
export function* eachField(message: Uint8Array): Generator<Field, undefined> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) yield new Field(message, reader);
}

/** Returns a reader of the last value of a field, which counts if a message repeats the field; undefined without the field. */
export function last(fields: readonly Field[], number: number): BinaryReader | undefined {
  const field = fields.findLast((each) => each.number === number);
  return field && new BinaryReader(field.value);
}

/** Reads the messages of a field in order, one at a time. */
export function* messages(fields: readonly Field[], number: number): Generator<readonly Field[], undefined> {
  for (const field of fields) if (field.number === number) yield readFields(field.content);
}

/** Returns a text; empty without the field. */
export function text(fields: readonly Field[], number: number): string {
  return last(fields, number)?.string() ?? "";
}

/** Returns an unsigned integer; undefined without the field. */
export function uint(fields: readonly Field[], number: number): bigint | undefined {
  const reader = last(fields, number);
  return reader && BigInt(reader.uint64());
}

/** Reads a manifest. @throws CatalogError Unsupported if it cannot be read. */
export function readable<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (cause) {
    throw asUnsupported(cause);
  }
}

/** Returns the error of a manifest that cannot be read. */
export function asUnsupported(cause: unknown): CatalogError {
  return cause instanceof CatalogError ? cause : unsupported("it cannot be read", cause);
}

/** Creates the error for a manifest that this code cannot read or continue. */
export function unsupported(why: string, cause?: unknown): CatalogError {
  return new CatalogError("Unsupported", `this catalog cannot process the layout of the table's manifest: ${why}`, {
    cause,
  });
}
