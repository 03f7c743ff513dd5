import { CatalogError, type ErrorKind, messageOf } from "@tiltyard/protocol";
import { lanceLibrary } from "../version.ts";

/**
 * What the library's messages say of a failure that the caller can do something about; the first that fits counts. Where
 * a message tells the caller nothing, another stands beside it.
 */
const kinds: readonly (readonly [RegExp, ErrorKind, string?])[] = [
  // The library panics where an expression has a part that it does not implement.
  [
    /^not (yet )?implemented|expected option to have value/i,
    "InvalidInput",
    "Lance implements no such expression. A placeholder (?, $1 or :name) has no value: write the value in its place.",
  ],
  [
    /commit conflict|concurrent(ly)? (modif|writ|commit)|conflicting (transaction|commit)|retryable/i,
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
/** The library's messages about data that a newer one wrote; it panics at types that it does not know. */
const newerData =
  /^panic in async function|expected type url|(cannot be (read|written) by|upgrade) (this version of )?lance|unknown \w*( \w+)? ?version/i;
const messageLengthMax = 500;
/** Lance's clients delete the manifests of old versions without the catalog, which keeps their records. */
const missingManifest = /dataset at path .*\/_versions\/[^/]*\.manifest was not found/i;
const cleanedUp = "the version has a record, but no manifest any more: a client has cleaned it up";
/** How stores tell of an object that is not there; Lance names its folder and file last. */
const missingFile = /(?:not found: |object at location )[^,]*\/((?:data|_deletions|_indices)\/[^\s,]+)/i;

/**
 * Translates an error or a panic of the library into an error of the catalog. A refusal of the catalog itself while the
 * library ran is returned unchanged, and so is an error of storage or of the machine. The library names many reasons in
 * its own words only: any other error is the request's, which would fail again.
 *
 * @param failure The latest refusal of the library's view of the catalog.
 * @param hasRows Whether the library read an Arrow stream of the request.
 */
export function translate(error: Error, failure: unknown, hasRows: boolean): unknown {
  const text = sentenceOf(messageOf(error));
  // A panic names no reason, and broken rows are the likely one.
  if (hasRows && text.startsWith("Panic")) return refusalWithoutName(error, text, hasRows);
  if (missingManifest.test(text)) return new CatalogError("TableVersionNotFound", cleanedUp, { cause: error });
  if (failure !== undefined) return failure;
  const [, file] = missingFile.exec(text) ?? [];
  if (file !== undefined) return new CatalogError("Internal", missingFrom(file), { cause: error });
  if (newerData.test(text)) return new CatalogError("Unsupported", beyondLibrary(legible(text)), { cause: error });
  const found = kinds.find(([pattern]) => pattern.test(text));
  if (found !== undefined) {
    const [, kind, message = legible(text)] = found;
    return new CatalogError(kind, message, { cause: error });
  }
  return refusalWithoutName(error, text, hasRows);
}

/** Translates an error or a panic that the library names in its own words only. */
function refusalWithoutName(error: Error, text: string, hasRows: boolean): Error {
  if (notOfRequest.test(text)) return error;
  const context = hasRows ? `${lanceLibrary} cannot read the rows of the Arrow stream, or the table: ` : "";
  return new CatalogError("InvalidInput", `${context}${legible(text)}`, { cause: error });
}

function beyondLibrary(text: string): string {
  return `${lanceLibrary} of this catalog cannot process this version of the table, which a newer library may have written. Open it with that library (${text}).`;
}

function missingFrom(file: string): string {
  return `The table's file ${file} is missing. Bring it back from a backup, or restore a version that does not need it.`;
}

/** Failures of storage and of the machine, for which no request is the reason. */
const notOfRequest =
  /\bio error|object store|generic \w+ error|os error|timed? ?out|connection|permission|no space|out of memory|not found/i;

/** What the library's bindings put before the sentence of the library itself. */
const wrapping = /^(Failed to [^:]*: (GenericFailure, )?|lance error: )+/;

function sentenceOf(text: string): string {
  return text.replace(wrapping, "");
}

/** Removes the library's kind of error, its place in the source, and repetitions from a sentence. */
function legible(text: string): string {
  const [first = ""] = text.split(/\s+Caused by:|[,:]?\s+Schema \{/);
  const message = first
    .replace(/^(Invalid input, |Invalid user input: |LanceError\(\w+\): )+/i, "")
    .replaceAll(/,? \/[^\s,]*:\d+:\d+/g, "")
    .replaceAll(/(?<=^|[\s'"`(])\/[^\s/,'"`)]+\/[^\s,'"`)]+/g, "...");
  return message.length > messageLengthMax ? `${message.slice(0, messageLengthMax)}...` : message;
}

/** Whether a commit was refused because another writer was first, so that it can be retried. */
export function isConflict(error: unknown): boolean {
  return error instanceof CatalogError && error.kind === "ConcurrentModification";
}
