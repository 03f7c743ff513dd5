import { CatalogError } from "@tiltyard/protocol";
import {
  type ArrowMessage,
  bodyBytesOf,
  continuation,
  decompressedBytesOf,
  kindOf,
  messageKinds,
  prefixBytes,
  rowsIn,
} from "./arrow-file.ts";
import { FlatTable } from "./flat-table.ts";

/**
 * The number of bytes of a stream that the library receives at once, and the maximum for one batch of rows and for all
 * dictionaries together, also for one of them after its decompression.
 */
export const fileBytes = {
  most: 32 * 1024 * 1024,
  ofOneBatch: 64 * 1024 * 1024,
  decompressed: 512 * 1024 * 1024,
} as const;
const headBytesMax = 4 * 1024 * 1024;

/** A message whose body is still unread. */
export interface MessageHead {
  readonly kind: number;
  readonly table: FlatTable;
  readonly bytes: Buffer;
  readonly headBytes: number;
  readonly bodyBytes: number;
}

/** Reads the head of a message. @returns undefined at the end of the stream. @throws CatalogError */
export async function readHead(reader: ByteReader): Promise<MessageHead | undefined> {
  const prefix = Buffer.alloc(prefixBytes);
  const got = await reader.fill(prefix);
  if (got === 0) return undefined;
  if (prefix.toString("latin1").startsWith("ARROW1")) throw notArrow("it is an Arrow file. Send an Arrow stream");
  const length = prefix.readInt32LE(4);
  if (got < prefixBytes || prefix.readUInt32LE(0) !== continuation || length < 0)
    throw notArrow("a message is broken, or has the framing of Arrow before 0.15");
  if (length === 0) return undefined;
  if (length > headBytesMax) throw tooLarge(`the metadata of a message may have at most ${headBytesMax} bytes`);
  if (length % 8 !== 0) throw notArrow("a message is broken");

  // Memory that was not written yet costs nothing, and the bytes may never arrive.
  const bytes = Buffer.allocUnsafeSlow(prefixBytes + length);
  prefix.copy(bytes);
  if ((await reader.fill(bytes.subarray(prefixBytes))) < length) throw notArrow("it ends within a message");
  const table = FlatTable.root(bytes.subarray(prefixBytes));
  const bodyBytes = bodyBytesOf(table);
  if (bodyBytes < 0) throw notArrow("a message is broken");
  const kind = kindOf(table);
  if (bodyBytes > fileBytes.ofOneBatch) {
    const rows = kind === messageKinds.batch ? Math.floor((rowsIn(table) * fileBytes.most) / bodyBytes) : 0;
    const such = rows > 0 ? ` of ${rows} rows each, such as pyarrow's table.to_batches(max_chunksize=${rows})` : "";
    throw tooLarge(
      `a batch of rows may have at most ${fileBytes.ofOneBatch} bytes, and this one has ${bodyBytes}. Write the stream in smaller batches${such}`,
    );
  }
  return { kind, table, bytes, headBytes: bytes.length, bodyBytes };
}

/** Reads the rest of a message. @param into A buffer of the length of the whole message. @throws CatalogError */
export async function readBody(reader: ByteReader, head: MessageHead, into: Buffer): Promise<ArrowMessage> {
  head.bytes.copy(into);
  if ((await reader.fill(into.subarray(head.headBytes))) < head.bodyBytes) throw notArrow("it ends within a message");
  const message = { kind: head.kind, table: head.table, bytes: into, headBytes: head.headBytes };
  // The library allocates this memory before it reads the buffers, and the number may be false.
  if ((decompressedBytesOf(message) ?? 0) > fileBytes.decompressed)
    throw notArrow(
      `a batch of rows has more than ${fileBytes.decompressed} bytes after its decompression. Write the stream in smaller batches`,
    );
  return message;
}

export function notArrow(why: string): CatalogError {
  return new CatalogError("InvalidInput", `the body is not an Arrow IPC stream that can be read: ${why}`);
}

export function tooLarge(why: string): CatalogError {
  return new CatalogError("PayloadTooLarge", why);
}

/** Reads the bytes of a stream in portions of requested sizes. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** Fills a buffer. @returns The number of bytes, which is less than its size only at the end of the stream. */
  async fill(target: Buffer): Promise<number> {
    let filled = 0;
    while (filled < target.length) {
      if (this.#rest.length === 0) {
        const { done, value } = await this.#chunks.next();
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
}
