import { CatalogError } from "@tiltyard/protocol";
import { convertLegacyBlobs } from "../arrow/legacy-blobs.ts";
import { readFiles } from "../arrow/rows-in.ts";
import type { OpenTable } from "./open-table.ts";

/** The result of writing a stream of rows. */
export interface Written {
  readonly rows: number;
  /** The version that contains all of them. */
  readonly version: number;
}

/**
 * Writes the rows of an Arrow stream into a table. Rows that fit into one file are one commit, which the library
 * rebases onto concurrent commits. A longer stream becomes several versions that the catalog holds back and publishes
 * at once, so that no reader sees a part as the latest version. Publishing fails if another writer has committed
 * meanwhile.
 *
 * @throws CatalogError InvalidInput, PayloadTooLarge
 */
export async function writeRows(
  dataset: OpenTable,
  stream: ReadableStream<Uint8Array>,
  mode: "append" | "overwrite",
): Promise<Written> {
  let rows = 0;
  let files = 0;
  let version = 0;
  for await (const part of readFiles(stream)) {
    const isFirst = files === 0;
    // The library adds no file without rows.
    const isNothing = part.rows === 0 && isFirst && part.isLast;
    const isNew = isFirst && (mode === "overwrite" || dataset.isEmpty);
    if (isNothing && !isNew) return { rows: 0, version: dataset.version };
    const columns = isNew ? await convertLegacyBlobs(part.file) : undefined;
    const hasMore = !part.isLast || (columns !== undefined && !isNothing);
    if (isFirst && hasMore) await dataset.hold();
    if (columns !== undefined) version = await dataset.create(columns);
    else if (isNothing || (isFirst && dataset.isEmpty)) version = await dataset.create(part.file);
    else version = (await dataset.raw.add(part.file, isFirst ? mode : "append")).version;
    if (columns !== undefined && !isNothing) version = (await dataset.raw.add(part.file, "append")).version;
    rows += part.rows;
    files += 1;
  }
  return { rows, version };
}

/**
 * Reads the rows of an Arrow stream as one file.
 *
 * @throws CatalogError InvalidInput; PayloadTooLarge if the rows exceed one file.
 */
export async function readOneFile(stream: ReadableStream<Uint8Array>, bytesMax: number): Promise<Buffer> {
  for await (const { file, isLast } of readFiles(stream)) {
    if (isLast) return file;
    throw new CatalogError("PayloadTooLarge", `a merge has at most ${bytesMax} bytes of rows. Send several merges`);
  }
  throw new Error("a stream has one file at least");
}
