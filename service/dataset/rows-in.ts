import { CatalogError } from "@tiltyard/protocol";
import { ArrowFileWriter, type ArrowMessage, messageKinds, readMessage } from "./arrow-file.ts";
import { FlatTable } from "./flat-table.ts";

/**
 * How many bytes of a stream are handed to the library at once, and the most that one batch of rows
 * and all dictionaries together may have.
 */
export const fileBytes = { most: 32 * 1024 * 1024, ofOneBatch: 64 * 1024 * 1024 } as const;
const headBytesMax = 4 * 1024 * 1024;
const prefixBytes = 8;

/** A part of a stream as an Arrow IPC file. */
export interface RowsFile {
  readonly file: Buffer;
  readonly rows: number;
  /** Whether nothing comes after it. */
  readonly isLast: boolean;
}

/**
 * Reads an Arrow IPC stream as files that each hold some of its batches. There is one at
 * least, with no rows in it when the stream has none. A file's bytes are good until the next
 * one is asked for: all files of a stream are in the same memory, one after the other.
 *
 * @throws CatalogError InvalidInput for what is no Arrow stream, PayloadTooLarge for a batch that is too large.
 */
export async function* readFiles(stream: ReadableStream<Uint8Array>): AsyncGenerator<RowsFile, undefined> {
  const reader = new ByteReader(stream);
  try {
    const head = await readHead(reader);
    if (head === undefined) throw notArrow("it does not begin with a schema");
    const schema = readMessage(head.bytes);
    if (schema.kind !== messageKinds.schema) throw notArrow("it does not begin with a schema");
    const file = new FileInMemory(schema);
    const dictionaries = new Map<number, ArrowMessage>();
    let dictionaryBytes = 0;
    let rows = 0;
    let isFilled = false;
    const take = (isLast: boolean): RowsFile => {
      const part = { file: file.finish(), rows, isLast };
      rows = 0;
      isFilled = false;
      return part;
    };
    for (let next = await readHead(reader); next !== undefined; next = await readHead(reader)) {
      if (next.kind === messageKinds.dictionary) {
        const dictionary = next.table.table(2);
        if (dictionary?.byte(2) === 1) throw notArrow("it has a dictionary that grows, which is not supported");
        // From here on it may stand for another one, which the rows before must not see.
        if (isFilled) yield take(false);
        const id = dictionary?.long(0) ?? 0;
        const bytes = next.bytes.length + next.bodyBytes;
        dictionaryBytes += bytes - (dictionaries.get(id)?.bytes.length ?? 0);
        if (dictionaryBytes > fileBytes.ofOneBatch)
          throw tooLarge(`all dictionaries of a stream may have ${fileBytes.ofOneBatch} bytes together`);
        dictionaries.set(id, await readBody(reader, next, Buffer.allocUnsafe(bytes)));
      } else if (next.kind === messageKinds.batch) {
        const bytes = next.bytes.length + next.bodyBytes;
        if (isFilled && file.length + bytes > fileBytes.most) yield take(false);
        if (!isFilled) for (const dictionary of dictionaries.values()) dictionary.bytes.copy(file.room(dictionary));
        await readBody(reader, next, file.room({ ...next, bytes: { length: bytes } }));
        rows += next.table.table(2)?.long(0) ?? 0;
        isFilled = true;
      } else throw notArrow(`it has a message of the kind ${next.kind} where rows were expected`);
    }
    yield take(true);
  } catch (error) {
    throw error instanceof RangeError ? notArrow("its metadata is broken") : error;
  } finally {
    reader.release();
  }
}

/** A file that grows in memory which the next one takes over. */
class FileInMemory {
  readonly #schema: ArrowMessage;
  #memory = Buffer.alloc(0);
  #length = 0;
  #writer: ArrowFileWriter | undefined;

  constructor(schema: ArrowMessage) {
    this.#schema = schema;
  }

  get length(): number {
    return this.#length;
  }

  /** Makes room for a message. @returns Where its bytes are to be written. */
  room(message: Pick<ArrowMessage, "kind" | "headBytes"> & { readonly bytes: { readonly length: number } }): Buffer {
    const writer = this.#begin();
    const { length } = message.bytes;
    const padding = writer.note(message.kind, message.headBytes, length);
    const start = this.#length;
    this.#append(length);
    this.#append(padding).fill(0);
    return this.#memory.subarray(start, start + length);
  }

  finish(): Buffer {
    for (const piece of this.#begin().end()) piece.copy(this.#append(piece.length));
    const file = this.#memory.subarray(0, this.#length);
    this.#writer = undefined;
    this.#length = 0;
    return file;
  }

  #begin(): ArrowFileWriter {
    if (this.#writer === undefined) {
      this.#writer = new ArrowFileWriter(this.#schema);
      for (const piece of this.#writer.begin()) piece.copy(this.#append(piece.length));
    }
    return this.#writer;
  }

  #append(length: number): Buffer {
    const start = this.#length;
    this.#length += length;
    if (this.#length > this.#memory.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.#length, Math.min(2 * this.#memory.length, fileBytes.most)));
      this.#memory.copy(larger, 0, 0, start);
      this.#memory = larger;
    }
    return this.#memory.subarray(start, this.#length);
  }
}

/** A message whose body is still to be read. */
interface MessageHead {
  readonly kind: number;
  readonly table: FlatTable;
  readonly bytes: Buffer;
  readonly headBytes: number;
  readonly bodyBytes: number;
}

/** @returns undefined at the end of the stream. */
async function readHead(reader: ByteReader): Promise<MessageHead | undefined> {
  const prefix = Buffer.alloc(prefixBytes);
  const got = await reader.fill(prefix);
  if (got === 0) return undefined;
  if (prefix.toString("latin1").startsWith("ARROW1")) throw notArrow("it is an Arrow file: send an Arrow stream");
  const length = prefix.readInt32LE(4);
  if (got < prefixBytes || prefix.readUInt32LE(0) !== 0xffffffff || length < 0) throw notArrow("a message is broken");
  if (length === 0) return undefined;
  if (length > headBytesMax) throw tooLarge(`the metadata of a message may have ${headBytesMax} bytes`);
  if (length % 8 !== 0) throw notArrow("a message is broken");

  const bytes = Buffer.concat([prefix, Buffer.alloc(length)]);
  if ((await reader.fill(bytes.subarray(prefixBytes))) < length) throw notArrow("it ends within a message");
  const table = FlatTable.root(bytes.subarray(prefixBytes));
  const bodyBytes = table.long(3);
  if (bodyBytes < 0) throw notArrow("a message is broken");
  if (bodyBytes > fileBytes.ofOneBatch)
    throw tooLarge(
      `a batch of rows may have ${fileBytes.ofOneBatch} bytes, no more: write the stream in smaller batches`,
    );
  return { kind: table.byte(1), table, bytes, headBytes: bytes.length, bodyBytes };
}

async function readBody(reader: ByteReader, head: MessageHead, into: Buffer): Promise<ArrowMessage> {
  head.bytes.copy(into);
  if ((await reader.fill(into.subarray(head.headBytes))) < head.bodyBytes) throw notArrow("it ends within a message");
  return { kind: head.kind, table: head.table, bytes: into, headBytes: head.headBytes };
}

function notArrow(why: string): CatalogError {
  return new CatalogError("InvalidInput", `the body is not an Arrow IPC stream that can be read: ${why}`);
}

function tooLarge(why: string): CatalogError {
  return new CatalogError("PayloadTooLarge", why);
}

/** Hands out the bytes of a stream in the portions that are asked for. */
class ByteReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  /** @returns How many bytes there were; fewer than the target has only at the end. */
  async fill(target: Buffer): Promise<number> {
    let filled = 0;
    while (filled < target.length) {
      if (this.#rest.length === 0) {
        const { done, value } = await this.#reader.read();
        if (done) break;
        this.#rest = value;
      }
      const part = this.#rest.subarray(0, target.length - filled);
      target.set(part, filled);
      filled += part.length;
      this.#rest = this.#rest.subarray(part.length);
    }
    return filled;
  }

  /** Leaves the rest of the stream to another reader. */
  release(): void {
    this.#reader.releaseLock();
  }
}
