import type { IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { type Failure, failureTrailer } from "@tiltyard/lance-worker";
import { CatalogError, type ErrorKind, hasKind } from "@tiltyard/protocol";
import type { CommitParts } from "../commits/parts.ts";
import type { NewTable } from "../commits/series.ts";
import type { ZonedColumn } from "../lance/zones.ts";
import { requireNotDeleted } from "../refs/branches.ts";
import type { TableRecord } from "../store/tables.ts";
import { ChildEnded } from "./child-process.ts";
import type { WatchedChild } from "./crash-isolation.ts";
import { translate, unreadableZone } from "./errors.ts";
import type { ServedView } from "./gateway.ts";

/** An error of the library with the library's own text. */
class LibraryError extends Error {
  override readonly name = "LibraryError";
}

/** Reads the whole body of a response. @throws ChildEnded if it is incomplete. */
export async function readBody(response: IncomingMessage): Promise<Buffer> {
  try {
    return await buffer(response);
  } catch (cause) {
    throw new ChildEnded("ended during its response", { cause });
  }
}

/** Reads the JSON response of the child. @throws CatalogError, LibraryError, ChildEnded */
export async function readJson(response: IncomingMessage): Promise<never> {
  const body: unknown = JSON.parse((await readBody(response)).toString("utf8"));
  if (response.statusCode === 200) return body as never;
  // The child is part of the catalog and always writes valid failures.
  const failure = body as Failure;
  if ("kind" in failure) throw new CatalogError(failure.kind as ErrorKind, failure.message);
  throw new LibraryError(failure.text);
}

/** Streams rows as the child sends them. @throws Error with the child's text if they break off. */
export async function* rowsOf(
  response: IncomingMessage,
  within: WatchedChild["within"],
): AsyncGenerator<Uint8Array, void> {
  const pieces: AsyncIterator<Uint8Array> = response[Symbol.asyncIterator]();
  try {
    for (let next = await within(pieces.next()); !next.done; next = await within(pieces.next())) yield next.value;
  } finally {
    response.destroy();
  }
  const trailer = response.trailers[failureTrailer];
  if (trailer === undefined) return;
  const failure = JSON.parse(decodeURIComponent(trailer)) as Failure;
  throw new Error("text" in failure ? failure.text : failure.message);
}

interface Called {
  readonly table: TableRecord | NewTable;
  readonly branch: string;
  /** The columns whose indices the library cannot read. */
  readonly zoned?: readonly ZonedColumn[];
}

/**
 * Translates an error of the library. Any other error is unchanged. If the table or the branch was deleted during the
 * call, its files are missing, and that is the error. The library panics at an index on a column with a zone such as
 * `+05:30` without the name of the column.
 *
 * @param hasRows Reports whether the caller sent rows, whose content may be the cause.
 */
export async function translateFailure(
  parts: CommitParts,
  { table, branch, zoned = [] }: Called,
  error: unknown,
  { failure }: ServedView,
  hasRows = false,
): Promise<unknown> {
  if (!(error instanceof LibraryError)) return error;
  try {
    if ("id" in table) await requireNotDeleted(parts, table, branch);
  } catch (deleted) {
    return deleted;
  }
  const known = translate(error, failure, hasRows);
  const [column] = zoned;
  return hasKind(known, "Unsupported") && column !== undefined ? unreadableZone(column, known) : known;
}
