import { LibraryError, lanceLibrary } from "@tiltyard/lance-worker";
import { CatalogError, type ErrorKind, hasKind, messageOf } from "@tiltyard/protocol";
import type { CommitDeps } from "../commits/deps.ts";
import type { NewTable } from "../commits/series.ts";
import type { ZonedColumn } from "../lance/zones.ts";
import { requireNotDeleted } from "../refs/branches.ts";
import type { TableRecord } from "../store/tables.ts";
import type { ServedView } from "./gateway.ts";

/** The library's messages about errors of callers, the first match first, with a text if theirs is of no help. */
const knownMessages: readonly (readonly [RegExp, ErrorKind, string?])[] = [
  // The library panics if a part of an expression is not implemented.
  [
    /^not (yet )?implemented|expected option to have value/i,
    "InvalidInput",
    "Lance does not implement this expression. A placeholder (?, $1 or :name) has no value: write the value in its place.",
  ],
  [/creating empty vector indices/i, "InvalidInput", "The column has no vectors yet. Add rows before its index."],
  [
    /commit conflict|incompatible transaction|concurrent(ly)? (modif|writ|commit)|conflicting (transaction|commit)|retryable/i,
    "ConcurrentModification",
  ],
  [/index not found|no index (named|with)|index .* does not exist/i, "TableIndexNotFound"],
  [/index .* already exists/i, "TableIndexAlreadyExists"],
  [/\btag\b.* does not exist/i, "TableTagNotFound"],
  [/duplicate (field|column) name|top level field \S+ cannot contain/i, "InvalidInput"],
  [
    /append with different schema|does not exist in table schema|schema mismatch|type conflicts|cannot be cast|non-nullable/i,
    "TableSchemaValidationError",
  ],
  [/(column|field)( path)? \S+ (does not exist|not found)|no field named|no vector column/i, "TableColumnNotFound"],
  [
    /^invalid input|invalid expression|^column '.*' already exists|invalid user input|schema error|parsing statement|sql parser|not supported|unsupported|unprocessable|failed to construct the fuzzy query|datafusion|query execution error: execution error|arrow error|^LanceError\((Arrow|Schema)\)|divide by zero/i,
    "InvalidInput",
  ],
];
/** Matches the library's messages about data that a newer version wrote. It panics at unknown types. */
const newerData =
  /^panic in async function|expected type url|(cannot be (read|written) by|upgrade) (this version of )?lance|unknown \w*( \w+)? ?version/i;
const messageLengthMax = 500;
/** Matches the message about a missing manifest, which Lance's clients may delete without the catalog. */
const missingManifest = /dataset at path .*\/_versions\/[^/]*\.manifest was not found/i;
const cleanedUp = "the manifest of this version does not exist: a client has cleaned up the version";
/** Matches the messages of stores about a missing object. Lance appends the folder and the name of the file. */
const missingFile = /(?:not found: |object at location )[^,]*\/((?:data|_deletions|_indices)\/[^\s,]+)/i;

/** Matches failed writes because the disk is full, read-only or has no quota left. */
const unwritable = /\(os error (28|30|122)\)/;
/** Matches failed requests to a cloud store, after the library's own retries. */
const failedRequest = /\bgeneric (s3|gcs) error/i;
/** Matches the message about a manifest that could not be written. The library then looks for its version in vain. */
const unknownCommit = /^commit result for version \d+ is unknown/i;
const unusable =
  "The storage of the table cannot be used now: it does not respond, or its disk is full or read-only. Try again.";

/** Matches the messages about a file that is empty, truncated or overwritten by something else. */
const damagedFile =
  /file size is too small|does not have sufficient data|invalid range .* for object of size|failed to decode protobuf|invalid magic/i;
const damaged =
  "A file of this version of the table is damaged. Restore the file from a backup, or read a version that does not need it.";

/**
 * Translates an error or a panic of the library to an error of the catalog. A rejection by the catalog itself during the
 * library's work is returned unchanged, like an error of storage or of the machine. Any other error counts as an error
 * of the request, which would fail again, because the library reports many such errors without an error code.
 *
 * @param failure The latest rejection by the library's view of the catalog.
 * @param hasRows Reports whether the library read an Arrow stream of the request.
 */
export function translate(error: Error, failure: unknown, hasRows: boolean): unknown {
  const text = messageOf(error).replace(wrapping, "");
  // The library reads the stream from memory, so no storage can cause this.
  if (hasRows && brokenRows.test(messageOf(error))) return invalidInput(error, text, hasRows);
  // A panic has no reason, and broken rows are the likely one.
  if (hasRows && text.startsWith("Panic")) return translateUnknown(error, text, hasRows);
  if (missingManifest.test(text)) return new CatalogError("TableVersionNotFound", cleanedUp, { cause: error });
  if (unwritable.test(text) || (unknownCommit.test(text) && hasKind(failure, "TableVersionNotFound")))
    return new CatalogError("ServiceUnavailable", unusable, { cause: error });
  if (failure !== undefined) return failure;
  const [, file] = missingFile.exec(text) ?? [];
  if (file !== undefined) return new CatalogError("Internal", missingFrom(file), { cause: error });
  if (failedRequest.test(text)) return new CatalogError("ServiceUnavailable", unusable, { cause: error });
  if (newerData.test(text)) return new CatalogError("Unsupported", unreadableVersion(legible(text)), { cause: error });
  if (damagedFile.test(text)) return new CatalogError("Internal", damaged, { cause: error });
  const found = knownMessages.find(([pattern]) => pattern.test(text));
  if (found !== undefined) {
    const [, kind, message = legible(text)] = found;
    return new CatalogError(kind, message, { cause: error });
  }
  return translateUnknown(error, text, hasRows);
}

/** Translates an error or a panic without an error code. */
function translateUnknown(error: Error, text: string, hasRows: boolean): Error {
  return infrastructureFailure.test(text) ? error : invalidInput(error, text, hasRows);
}

function invalidInput(error: Error, text: string, hasRows: boolean): CatalogError {
  const context = hasRows ? `${lanceLibrary} cannot read the rows of the Arrow stream, or the table: ` : "";
  return new CatalogError("InvalidInput", `${context}${legible(text)}`, { cause: error });
}

function unreadableVersion(text: string): string {
  return `${lanceLibrary} of this catalog cannot process this version of the table, which a newer library may have written, or a type in the request, such as a timestamp with the zone +05:30. Open the table with that library (${text}).`;
}

/** Creates the error for a call that needs an index on a column with a zone such as `+05:30`, which Lance 12 cannot read. */
export function unreadableZone({ name, zone }: ZonedColumn, cause?: CatalogError): CatalogError {
  const why = `${lanceLibrary} of this catalog can neither build nor use an index on the column ${name} with the zone ${zone}. Use the library that wrote the table, or store such times in UTC`;
  return new CatalogError("Unsupported", why, { cause });
}

function missingFrom(file: string): string {
  return `The table's file ${file} is missing. Restore the file from a backup, or restore a version that does not need it.`;
}

/** Matches failures of storage and of the machine, which no request can cause. */
const infrastructureFailure =
  /\bio error|object store|generic \w+ error|os error|timed? ?out|connection|permission|no space|out of memory|not found/i;

const brokenRows = /^Failed to read record batch from IPC file/;

const wrapping = /^(Failed to [^:]*: (GenericFailure, )?|lance error: )+/;

/** Removes the library's kind of error, its source location and repetitions from a message. */
function legible(text: string): string {
  const [first = ""] = text.split(/\s+Caused by:|[,:]?\s+Schema \{/);
  const message = first
    .replace(/^(Invalid input, |Invalid user input: |LanceError\(\w+\): )+/i, "")
    .replaceAll(/,? \/[^\s,]*:\d+:\d+/g, "")
    .replaceAll(/(?<=^|[\s'"`(])\/[^\s/,'"`)]+\/[^\s,'"`)]+/g, "...");
  return message.length > messageLengthMax ? `${message.slice(0, messageLengthMax)}...` : message;
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
  deps: CommitDeps,
  { table, branch, zoned = [] }: Called,
  error: unknown,
  { failure }: ServedView,
  hasRows = false,
): Promise<unknown> {
  if (!(error instanceof LibraryError)) return error;
  try {
    if ("id" in table) await requireNotDeleted(deps, table, branch);
  } catch (deleted) {
    return deleted;
  }
  const known = translate(error, failure, hasRows);
  const [column] = zoned;
  return hasKind(known, "Unsupported") && column !== undefined ? unreadableZone(column, known) : known;
}
