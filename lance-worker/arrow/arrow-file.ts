import { FlatTable } from "./flat-table.ts";

/**
 * Arrow IPC files and streams as bytes. Messages are separated and combined without reading their bodies, so every type
 * and every compression is supported.
 * https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
 */
const magic = Buffer.from("ARROW1");
const header = Buffer.from("ARROW1\0\0");
export const continuation = 0xffffffff;
export const endOfStream = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
/** The number of bytes before the metadata of a message: the continuation and the length of the metadata. */
export const prefixBytes = 8;
const blockBytes = 24;
/** The sizes of the description of a buffer, and of the number before a compressed one. */
const [bufferBytes, lengthBytes] = [16, 8];

export const messageKinds = { schema: 1, dictionary: 2, batch: 3 } as const;

/** One message with its body. */
export interface ArrowMessage {
  /** The metadata as a FlatBuffer. */
  readonly table: FlatTable;
  /** One of messageKinds, or a different number. */
  readonly kind: number;
  /** The whole message: prefix, metadata and body. */
  readonly bytes: Buffer;
  /** The number of bytes before the body. */
  readonly headBytes: number;
}

/**
 * Reads a message. @param bytes The bytes that begin with the message. @throws RangeError if they end within the
 * message or contain none.
 */
export function readMessage(bytes: Buffer): ArrowMessage {
  if (bytes.readUInt32LE(0) !== continuation) throw new RangeError("a message is missing here");
  const headBytes = prefixBytes + bytes.readInt32LE(4);
  const table = FlatTable.root(bytes.subarray(prefixBytes, headBytes));
  const length = headBytes + bodyBytesOf(table);
  if (headBytes % 8 !== 0 || length > bytes.length || length < headBytes)
    throw new RangeError("a message is longer than its bytes");
  return { table, kind: kindOf(table), bytes: bytes.subarray(0, length), headBytes };
}

/** Creates a message without a body. @param metadata A FlatBuffer whose length is a multiple of 8. */
export function messageOf(metadata: Uint8Array): ArrowMessage {
  const prefix = Buffer.alloc(prefixBytes);
  prefix.writeUInt32LE(continuation, 0);
  prefix.writeInt32LE(metadata.length, 4);
  return readMessage(Buffer.concat([prefix, metadata]));
}

// The numbers below are the indices of fields in Message.fbs and File.fbs.

/**
 * @param message The metadata of a message, as in all of these functions. @returns One of messageKinds, or a different
 * number.
 */
export function kindOf(message: FlatTable): number {
  return message.byte(1);
}

export function bodyBytesOf(message: FlatTable): number {
  return message.long(3);
}

/** Returns the number of rows of a batch. */
export function rowsIn(batch: FlatTable): number {
  return batch.table(2)?.long(0) ?? 0;
}

/** Returns the id of a dictionary, and whether its values are added to the previous ones. */
export function dictionaryIn(message: FlatTable): { readonly id: number; readonly isDelta: boolean } {
  const dictionary = message.table(2);
  return { id: dictionary?.long(0) ?? 0, isDelta: dictionary?.byte(2) === 1 };
}

/**
 * Returns the number of bytes of a batch or a dictionary after its decompression; undefined without compression. Each
 * buffer begins with its own number, or with -1 if it is not compressed.
 *
 * @throws RangeError for a buffer outside of the message or with an impossible number.
 */
export function decompressedBytesOf({ kind, table, bytes, headBytes }: ArrowMessage): number | undefined {
  const batch = kind === messageKinds.dictionary ? table.table(2)?.table(1) : table.table(2);
  if (batch?.table(3) === undefined) return undefined;
  let total = 0;
  for (const buffer of batch.structs(2, bufferBytes)) {
    const [start, length] = [Number(buffer.readBigInt64LE(0)), Number(buffer.readBigInt64LE(8))];
    if (length === 0) continue;
    if (start < 0 || length < lengthBytes || headBytes + start + length > bytes.length)
      throw new RangeError("a buffer is outside of its message");
    const decompressed = Number(bytes.readBigInt64LE(headBytes + start));
    if (decompressed < -1) throw new RangeError("a buffer has a negative length");
    total += decompressed === -1 ? length : decompressed;
  }
  return total;
}

/** Returns the footer of a file. */
export function footerOf(file: Buffer): FlatTable {
  const end = file.length - magic.length - 4;
  return FlatTable.root(file.subarray(end - file.readInt32LE(end), end));
}

/** Returns the messages of a file: its schema, its dictionaries and its batches of rows. */
export function messagesOf(file: Buffer): ArrowMessage[] {
  const footer = footerOf(file);
  let start = header.length;
  // Writers may align the first message to a multiple of 64.
  while (file.readUInt32LE(start) === 0) start += 8;
  const blocks = [...footer.structs(2, blockBytes), ...footer.structs(3, blockBytes)];
  return [start, ...blocks.map((block) => Number(block.readBigInt64LE(0)))].map((at) => readMessage(file.subarray(at)));
}

/** Returns a file of a schema with at most one batch. */
export function fileOf(schema: ArrowMessage, batch?: ArrowMessage): Buffer {
  const writer = new ArrowFileWriter(schema);
  return Buffer.concat([...writer.begin(), ...(batch === undefined ? [] : writer.add(batch)), ...writer.end()]);
}

/** Writes a file in pieces. */
export class ArrowFileWriter {
  readonly #schema: ArrowMessage;
  readonly #blocks: { readonly dictionary: Buffer[]; readonly batch: Buffer[] } = { dictionary: [], batch: [] };
  #length = 0;

  constructor(schema: ArrowMessage) {
    this.#schema = schema;
  }

  /** Returns the beginning of the file. */
  begin(): Buffer[] {
    this.#length = header.length + this.#schema.bytes.length;
    return [header, this.#schema.bytes];
  }

  /** Returns a dictionary or a batch as part of the file. */
  add({ kind, bytes, headBytes }: ArrowMessage): Buffer[] {
    return [bytes, Buffer.alloc(this.note(kind, headBytes, bytes.length))];
  }

  /** Records a message that the caller writes. @returns The number of zeros that must follow it. */
  note(kind: number, headBytes: number, length: number): number {
    const block = Buffer.alloc(blockBytes);
    block.writeBigInt64LE(BigInt(this.#length), 0);
    block.writeInt32LE(headBytes, 8);
    block.writeBigInt64LE(BigInt(length - headBytes), 16);
    this.#blocks[kind === messageKinds.dictionary ? "dictionary" : "batch"].push(block);
    // The next message begins at a multiple of 8.
    const padding = -length & 7;
    this.#length += length + padding;
    return padding;
  }

  end(): Buffer[] {
    const footer = writeFooter(this.#schema, this.#blocks.dictionary, this.#blocks.batch);
    const length = Buffer.alloc(4);
    length.writeInt32LE(footer.length);
    return [endOfStream, footer, length, magic];
  }
}

/**
 * Writes a footer around the metadata of the schema's message. A FlatBuffer refers only to data behind it by relative
 * offsets, so a copy of the whole metadata is valid at any multiple of 8.
 */
function writeFooter(schema: ArrowMessage, dictionaries: readonly Buffer[], batches: readonly Buffer[]): Buffer {
  const layout = { at: 8, table: 24, dictionaries: 56 };
  const batchesAt = layout.dictionaries + dictionaries.length * blockBytes + 8;
  const metadataAt = batchesAt + batches.length * blockBytes;
  const metadata = schema.bytes.subarray(prefixBytes, schema.headBytes);
  // A stream has any number of files, and their footers together would read the table of the schema too often.
  const table = FlatTable.root(metadata);
  const schemaAt = metadataAt + (table.table(2)?.position ?? 0);

  const footer = Buffer.alloc(metadataAt);
  footer.writeUInt32LE(layout.table, 0);
  // The layout of the table: its own length, the length of the table, and the offsets of version, schema, dictionaries
  // and batches.
  for (const [index, value] of [12, 20, 4, 8, 12, 16].entries()) footer.writeUInt16LE(value, layout.at + 2 * index);
  footer.writeInt32LE(layout.table - layout.at, layout.table);
  footer.writeInt16LE(table.short(0), layout.table + 4);
  footer.writeUInt32LE(schemaAt - (layout.table + 8), layout.table + 8);
  for (const [field, blocks, at] of [
    [12, dictionaries, layout.dictionaries],
    [16, batches, batchesAt],
  ] as const) {
    footer.writeUInt32LE(at - 4 - (layout.table + field), layout.table + field);
    footer.writeUInt32LE(blocks.length, at - 4);
    for (const [index, block] of blocks.entries()) block.copy(footer, at + index * blockBytes);
  }
  return Buffer.concat([footer, metadata]);
}
