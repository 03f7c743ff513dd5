import { CatalogError } from "@tiltyard/protocol";
import { ArrowFileWriter, type ArrowMessage, bodyBytesOf, messageKinds, readMessage } from "./arrow-file.ts";

/** How many bytes of a stream are handed to the library at once, and the most that one batch of rows may have. */
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
 * least, with no rows in it when the stream has none.
 *
 * @throws CatalogError InvalidInput for what is no Arrow stream, PayloadTooLarge for a batch that is too large.
 */
export async function* readFiles(stream: ReadableStream<Uint8Array>): AsyncGenerator<RowsFile, undefined> {
  const reader = new ByteReader(stream);
  try {
    const schema = await nextMessage(reader);
    if (schema?.kind !== messageKinds.schema) throw notArrow("it does not begin with a schema");
    const dictionaries = new Map<number, ArrowMessage>();
    let batches: ArrowMessage[] = [];
    let bytes = 0;
    const take = (isLast: boolean): RowsFile => {
      const file = writeFile(schema, [...dictionaries.values(), ...batches]);
      const rows = batches.reduce((sum, batch) => sum + (batch.table.table(2)?.long(0) ?? 0), 0);
      batches = [];
      bytes = 0;
      return { file, rows, isLast };
    };
    for (let message = await nextMessage(reader); message !== undefined; message = await nextMessage(reader)) {
      if (message.kind === messageKinds.batch) {
        if (batches.length > 0 && bytes + message.bytes.length > fileBytes.most) yield take(false);
        batches.push(message);
        bytes += message.bytes.length;
      } else if (message.kind === messageKinds.dictionary) {
        const dictionary = message.table.table(2);
        if (dictionary?.byte(2) === 1) throw notArrow("it has a dictionary that grows, which is not supported");
        // From here on it may stand for another one, which the rows before must not see.
        if (batches.length > 0) yield take(false);
        dictionaries.set(dictionary?.long(0) ?? 0, message);
      } else throw notArrow(`it has a message of the kind ${message.kind} where rows were expected`);
    }
    yield take(true);
  } catch (error) {
    throw error instanceof RangeError ? notArrow("its metadata is broken") : error;
  } finally {
    await reader.cancel();
  }
}

function writeFile(schema: ArrowMessage, messages: readonly ArrowMessage[]): Buffer {
  const writer = new ArrowFileWriter(schema);
  return Buffer.concat([...writer.begin(), ...messages.flatMap((message) => writer.add(message)), ...writer.end()]);
}

/** @returns undefined at the end of the stream. */
async function nextMessage(reader: ByteReader): Promise<ArrowMessage | undefined> {
  const prefix = Buffer.alloc(prefixBytes);
  const got = await reader.fill(prefix);
  if (got === 0) return undefined;
  if (prefix.toString("latin1").startsWith("ARROW1")) throw notArrow("it is an Arrow file: send an Arrow stream");
  const length = prefix.readInt32LE(4);
  if (got < prefixBytes || prefix.readUInt32LE(0) !== 0xffffffff || length < 0) throw notArrow("a message is broken");
  if (length === 0) return undefined;
  if (length > headBytesMax) throw tooLarge(`the metadata of a message may have ${headBytesMax} bytes`);

  const head = Buffer.concat([prefix, Buffer.alloc(length)]);
  if ((await reader.fill(head.subarray(prefixBytes))) < length) throw notArrow("it ends within a message");
  const bodyBytes = bodyBytesOf(head);
  if (bodyBytes > fileBytes.ofOneBatch)
    throw tooLarge(
      `a batch of rows may have ${fileBytes.ofOneBatch} bytes, no more: write the stream in smaller batches`,
    );
  const bytes = Buffer.allocUnsafe(head.length + bodyBytes);
  head.copy(bytes);
  if ((await reader.fill(bytes.subarray(head.length))) < bodyBytes) throw notArrow("it ends within a message");
  return readMessage(bytes);
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

  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined);
  }
}
