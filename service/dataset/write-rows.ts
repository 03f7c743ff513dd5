import { CatalogError } from "@tiltyard/protocol";
import type { ChangeableDataset, EmptyDataset } from "./datasets.ts";
import { readFiles } from "./rows-in.ts";

/** What became of a stream of rows. */
export interface Written {
  readonly rows: number;
  /** The version that has them all. */
  readonly version: number;
}

/**
 * Writes the rows of an Arrow stream into a table. What fits into one file is one commit,
 * which the library brings on top of commits of others. A longer stream is written as several
 * versions that are held back and then published at once, so that no reader ever sees a part as
 * the latest; that fails when another writer committed meanwhile.
 *
 * @throws CatalogError InvalidInput, PayloadTooLarge, TableSchemaValidationError, ConcurrentModification
 */
export async function writeRows(
  dataset: ChangeableDataset | EmptyDataset,
  stream: ReadableStream<Uint8Array>,
  mode: "append" | "overwrite",
): Promise<Written> {
  const { commits } = dataset;
  let rows = 0;
  let files = 0;
  let version = 0;
  try {
    for await (const part of readFiles(stream)) {
      if (files === 0 && !part.isLast) commits.hold();
      // The library adds no file without rows.
      const isNothing = part.rows === 0 && files === 0 && part.isLast;
      if (isNothing && mode === "append" && !dataset.isEmpty) return { rows: 0, version: dataset.version };
      version =
        isNothing || (files === 0 && dataset.isEmpty)
          ? await dataset.create(part.file)
          : (await dataset.runRaw((table) => table.add(part.file, files === 0 ? mode : "append"))).version;
      rows += part.rows;
      files += 1;
    }
    if (files > 1) await commits.publish();
  } catch (error) {
    await commits.discard().catch(() => undefined);
    throw error;
  }
  return { rows, version };
}

/**
 * The rows of an Arrow stream as one file.
 *
 * @throws CatalogError InvalidInput, PayloadTooLarge when they are more than one file may have.
 */
export async function readOneFile(stream: ReadableStream<Uint8Array>, bytesMax: number): Promise<Buffer> {
  for await (const { file, isLast } of readFiles(stream)) {
    if (isLast) return file;
    throw new CatalogError(
      "PayloadTooLarge",
      `rows are merged in one go, and this catalog takes ${bytesMax} bytes of them: send less at a time`,
    );
  }
  throw new Error("a stream has one file at least");
}
