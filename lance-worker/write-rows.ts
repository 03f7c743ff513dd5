import { CatalogError } from "@tiltyard/protocol";
import { readSchema } from "./arrow/arrow-schema.ts";
import { withEmptyBatch } from "./arrow/empty-batch.ts";
import { convertLegacyBlobs, legacyBlobVersions } from "./arrow/legacy-blobs.ts";
import { type ByteReader, fileBytes } from "./arrow/message-stream.ts";
import { splitStream } from "./arrow/split-stream.ts";
import { requireNoValues } from "./computed-column.ts";
import { findField } from "./field-path.ts";
import type { OpenTable } from "./open-table.ts";
import type { WriteRequest, Written } from "./wire.ts";

/**
 * Writes the rows of an Arrow stream into a table. Rows that fit into one file are one commit, which the library
 * rebases onto concurrent commits. A longer stream becomes several versions that the catalog holds back and publishes
 * at once, so that no reader sees a part as the latest version. Publishing fails if another writer has committed
 * meanwhile.
 *
 * @throws CatalogError InvalidInput, PayloadTooLarge, TableColumnNotFound
 */
export async function writeRows(
  dataset: OpenTable,
  reader: ByteReader,
  { mode, on = [] }: WriteRequest,
): Promise<Written> {
  let rows = 0;
  let files = 0;
  let version = 0;
  for await (const part of splitStream(reader)) {
    requireNoValues(dataset.computed, part.file);
    if (files === 0) requireFields(part.file, on);
    const hasNewColumns = files === 0 && (mode === "overwrite" || dataset.isEmpty);
    const columns =
      hasNewColumns && !legacyBlobVersions.includes(dataset.fileVersion) ? convertLegacyBlobs(part.file) : undefined;
    const written = columns === undefined ? [part] : [{ file: columns, rows: 0 }, ...(part.rows === 0 ? [] : [part])];
    if (files === 0 && (written.length > 1 || !part.isLast)) await dataset.hold();
    for (const each of written) {
      // The library adds no file without a batch.
      const file = () => (each.rows === 0 ? withEmptyBatch(each.file) : each.file);
      version =
        files === 0 && dataset.isEmpty
          ? await dataset.create(each.file)
          : (await dataset.raw.add(file(), files === 0 ? mode : "append")).version;
      rows += each.rows;
      files += 1;
    }
  }
  return { rows, version };
}

function requireFields(file: Buffer, paths: readonly string[]): void {
  if (paths.length === 0) return;
  const { fields } = readSchema(file);
  const missing = paths.find((path) => findField(fields, path) === undefined);
  if (missing !== undefined) throw new CatalogError("TableColumnNotFound", `on: the rows have no field ${missing}`);
}

/**
 * Reads the rows of an Arrow stream as one file.
 *
 * @throws CatalogError InvalidInput; PayloadTooLarge if the rows exceed one file.
 */
export async function readOneFile(reader: ByteReader): Promise<Buffer> {
  for await (const { file, isLast } of splitStream(reader)) {
    if (isLast) return file;
    throw new CatalogError(
      "PayloadTooLarge",
      `a merge has at most ${fileBytes.most} bytes of rows. Send several merges`,
    );
  }
  throw new Error("a stream has one file at least");
}
