import { withZones } from "./arrow-field.ts";
import { ArrowFileWriter, type ArrowMessage, dictionaryIn, messageKinds, readMessage, rowsIn } from "./arrow-file.ts";
import { plainZone } from "./arrow-type.ts";
import { type ByteReader, fileBytes, notArrow, readBody, readHead, tooLarge } from "./message-stream.ts";

/** A part of a stream as an Arrow IPC file. */
export interface RowsFile {
  readonly file: Buffer;
  readonly rows: number;
  /** Reports whether it is the last part. */
  readonly isLast: boolean;
}

/**
 * Reads an Arrow IPC stream as files, each of which contains some of its batches. A stream without rows yields one file
 * without rows. The bytes of a file are valid only until the next file is requested, because all files of a stream
 * share the same memory.
 *
 * @throws CatalogError InvalidInput if the stream is not an Arrow stream; PayloadTooLarge for a batch that exceeds the
 * limit.
 */
export async function* splitStream(reader: ByteReader): AsyncGenerator<RowsFile, undefined> {
  try {
    const head = await readHead(reader);
    if (head === undefined) throw notArrow("it does not begin with a schema");
    const schema = readMessage(head.bytes);
    if (schema.kind !== messageKinds.schema) throw notArrow("it does not begin with a schema");
    const file = new FileInMemory(withZones(schema, plainZone));
    const dictionaries = new Map<number, ArrowMessage>();
    let dictionaryBytes = 0;
    let rows = 0;
    /** The size of the batches of the present file. Its dictionaries do not count, because each file has all of them. */
    let filledBytes = 0;
    const take = (isLast: boolean): RowsFile => {
      const part = { file: file.finish(), rows, isLast };
      rows = 0;
      filledBytes = 0;
      return part;
    };
    for (let next = await readHead(reader); next !== undefined; next = await readHead(reader)) {
      if (next.kind === messageKinds.dictionary) {
        const { id, isDelta } = dictionaryIn(next.table);
        if (isDelta) throw notArrow("it has a delta dictionary, which is not supported");
        // The id may stand for a different dictionary from here on, which earlier rows must not use.
        if (filledBytes > 0) yield take(false);
        const bytes = next.bytes.length + next.bodyBytes;
        dictionaryBytes += bytes - (dictionaries.get(id)?.bytes.length ?? 0);
        if (dictionaryBytes > fileBytes.ofOneBatch)
          throw tooLarge(`the dictionaries of a stream may have at most ${fileBytes.ofOneBatch} bytes together`);
        dictionaries.set(id, await readBody(reader, next, Buffer.allocUnsafe(bytes)));
      } else if (next.kind === messageKinds.batch) {
        const bytes = next.bytes.length + next.bodyBytes;
        if (filledBytes > 0 && filledBytes + bytes > fileBytes.most) yield take(false);
        if (filledBytes === 0)
          for (const dictionary of dictionaries.values()) dictionary.bytes.copy(file.room(dictionary));
        await readBody(reader, next, file.room({ ...next, bytes: { length: bytes } }));
        rows += rowsIn(next.table);
        filledBytes += bytes;
      } else throw notArrow(`it has a message of the kind ${next.kind} where rows were expected`);
    }
    yield take(true);
  } catch (error) {
    throw error instanceof RangeError ? notArrow("its metadata is broken") : error;
  }
}

/** A file that grows in memory, which the next file reuses. */
class FileInMemory {
  readonly #schema: ArrowMessage;
  #memory = Buffer.alloc(0);
  #length = 0;
  #writer: ArrowFileWriter | undefined;

  constructor(schema: ArrowMessage) {
    this.#schema = schema;
  }

  /** Reserves space for a message. @returns The buffer for its bytes. */
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
