import { writePlainZones } from "./arrow-field.ts";
import { ArrowFileWriter, type ArrowMessage, dictionaryIn, messageKinds, readMessage, rowsIn } from "./arrow-file.ts";
import { ByteReader, fileBytes, notArrow, readBody, readHead, tooLarge } from "./message-stream.ts";

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
    writePlainZones(schema.table);
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
        const { id, isDelta } = dictionaryIn(next.table);
        if (isDelta) throw notArrow("it has a dictionary that grows, which is not supported");
        // From here on it may stand for another one, which the rows before must not see.
        if (isFilled) yield take(false);
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
        rows += rowsIn(next.table);
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
