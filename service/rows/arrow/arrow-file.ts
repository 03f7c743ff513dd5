import { FlatTable } from "./flat-table.ts";

/**
 * Arrow IPC files and streams as bytes: messages are told apart and put together, and what is
 * in their bodies is not read, so that every type and every compression passes.
 * https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
 */
const magic = Buffer.from("ARROW1");
const header = Buffer.from("ARROW1\0\0");
export const continuation = 0xffffffff;
const endOfStream = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
/** How many bytes come before the metadata of a message: the continuation, and how long it is. */
export const prefixBytes = 8;
const blockBytes = 24;

export const messageKinds = { schema: 1, dictionary: 2, batch: 3 } as const;

/** One message with its body. */
export interface ArrowMessage {
  /** The metadata as a FlatBuffer. */
  readonly table: FlatTable;
  /** One of messageKinds, or a number that is none. */
  readonly kind: number;
  /** All of it: prefix, metadata and body. */
  readonly bytes: Buffer;
  /** How many of the bytes come before the body. */
  readonly headBytes: number;
}

/** @param bytes Begin with the message. @throws RangeError when they end before it, or are none. */
export function readMessage(bytes: Buffer): ArrowMessage {
  if (bytes.readUInt32LE(0) !== continuation) throw new RangeError("there is no message here");
  const headBytes = prefixBytes + bytes.readInt32LE(4);
  const table = FlatTable.root(bytes.subarray(prefixBytes, headBytes));
  const length = headBytes + bodyBytesOf(table);
  if (headBytes % 8 !== 0 || length > bytes.length || length < headBytes)
    throw new RangeError("a message is longer than its bytes");
  return { table, kind: kindOf(table), bytes: bytes.subarray(0, length), headBytes };
}

// Numbers are the indices of fields in Message.fbs and File.fbs.

/** @param message The metadata of a message, as in all of these. @returns One of messageKinds, or a number that is none. */
export function kindOf(message: FlatTable): number {
  return message.byte(1);
}

export function bodyBytesOf(message: FlatTable): number {
  return message.long(3);
}

/** How many rows a batch has. */
export function rowsIn(batch: FlatTable): number {
  return batch.table(2)?.long(0) ?? 0;
}

/** The id of a dictionary, and whether its values are added to those that came before. */
export function dictionaryIn(message: FlatTable): { readonly id: number; readonly isDelta: boolean } {
  const dictionary = message.table(2);
  return { id: dictionary?.long(0) ?? 0, isDelta: dictionary?.byte(2) === 1 };
}

/** The footer of a file. */
export function footerOf(file: Buffer): FlatTable {
  const end = file.length - magic.length - 4;
  return FlatTable.root(file.subarray(end - file.readInt32LE(end), end));
}

/** The messages of a file: its schema, its dictionaries, and its batches of rows. */
export function messagesOf(file: Buffer): ArrowMessage[] {
  const footer = footerOf(file);
  let start = header.length;
  // Writers may begin with the first message at a multiple of 64.
  while (file.readUInt32LE(start) === 0) start += 8;
  const blocks = [...footer.structs(2, blockBytes), ...footer.structs(3, blockBytes)];
  return [start, ...blocks.map((block) => Number(block.readBigInt64LE(0)))].map((at) => readMessage(file.subarray(at)));
}

/** Writes a file piece by piece. */
export class ArrowFileWriter {
  readonly #schema: ArrowMessage;
  readonly #blocks: { readonly dictionary: Buffer[]; readonly batch: Buffer[] } = { dictionary: [], batch: [] };
  #length = 0;

  constructor(schema: ArrowMessage) {
    this.#schema = schema;
  }

  /** How the file begins. */
  begin(): Buffer[] {
    this.#length = header.length + this.#schema.bytes.length;
    return [header, this.#schema.bytes];
  }

  /** A dictionary or a batch, as it stands in the file. */
  add({ kind, bytes, headBytes }: ArrowMessage): Buffer[] {
    return [bytes, Buffer.alloc(this.note(kind, headBytes, bytes.length))];
  }

  /** Notes a message that the caller writes. @returns How many zeros come behind it. */
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
 * Writes a footer around the metadata of the schema's message: all that a FlatBuffer refers to
 * lies behind it at a distance, so a copy of the whole metadata is good at any multiple of 8.
 */
function writeFooter(schema: ArrowMessage, dictionaries: readonly Buffer[], batches: readonly Buffer[]): Buffer {
  const layout = { at: 8, table: 24, dictionaries: 56 };
  const batchesAt = layout.dictionaries + dictionaries.length * blockBytes + 8;
  const metadataAt = batchesAt + batches.length * blockBytes;
  const metadata = schema.bytes.subarray(prefixBytes, schema.headBytes);
  const schemaAt = metadataAt + (schema.table.table(2)?.position ?? 0);

  const footer = Buffer.alloc(metadataAt);
  footer.writeUInt32LE(layout.table, 0);
  // The layout of the table: its own length, that of the table, and where version, schema, dictionaries and batches are.
  for (const [index, value] of [12, 20, 4, 8, 12, 16].entries()) footer.writeUInt16LE(value, layout.at + 2 * index);
  footer.writeInt32LE(layout.table - layout.at, layout.table);
  footer.writeInt16LE(schema.table.short(0), layout.table + 4);
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
