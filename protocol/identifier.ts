import { CatalogError } from "./errors.ts";

/** The parts of an object's identifier, the outermost namespace first; `[]` is the root namespace. */
export type Identifier = readonly string[];

/** The delimiter of identifiers in paths, unless the request specifies another one. */
export const defaultDelimiter = "$";

/** The branch of every table that requests without a branch refer to. */
export const mainBranch = "main";

/** The rules for identifiers and delimiters, also for the OpenAPI document. */
export const identifierLimits = {
  partsMax: 32,
  partLengthMax: 256,
  delimiterLengthMax: 16,
  /** A regular expression of JSON Schema. Not every dialect has a name for control characters. */
  noControlCharacters: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
} as const;

const { partsMax, partLengthMax, delimiterLengthMax } = identifierLimits;
const controlCharacter = /\p{Cc}/u;

/**
 * Splits the `id` of a path into its parts. An id that equals the delimiter is the root namespace.
 *
 * @throws CatalogError InvalidInput if the delimiter or a part is invalid.
 */
export function parseIdentifier(id: string, delimiter: string = defaultDelimiter): Identifier {
  checkDelimiter(delimiter);
  return id === delimiter ? [] : checkIdentifier(id.split(delimiter));
}

/** Validates a delimiter and returns it. @throws CatalogError InvalidInput */
export function checkDelimiter(delimiter: string): string {
  if (delimiter === "" || isLonger(delimiter, delimiterLengthMax) || controlCharacter.test(delimiter))
    throw new CatalogError(
      "InvalidInput",
      `delimiter: must have 1 to ${delimiterLengthMax} characters, none of them a control character`,
    );
  return delimiter;
}

/** Formats an identifier as a string that `parseIdentifier` can parse. */
export function formatIdentifier(identifier: Identifier, delimiter: string = defaultDelimiter): string {
  return identifier.length === 0 ? delimiter : identifier.join(delimiter);
}

/** Validates an identifier and returns it. @throws CatalogError InvalidInput with the first violated rule. */
export function checkIdentifier(identifier: Identifier): Identifier {
  const problem = problemOfIdentifier(identifier);
  if (problem !== undefined) throw new CatalogError("InvalidInput", `id: ${problem}`);
  return identifier;
}

/** Returns the first rule that an identifier violates; undefined for a valid one. */
export function problemOfIdentifier(identifier: Identifier): string | undefined {
  if (identifier.length > partsMax) return `has ${identifier.length} parts, at most ${partsMax} are allowed`;
  return identifier.map(problemOfPart).find((problem) => problem !== undefined);
}

function problemOfPart(part: string): string | undefined {
  if (part === "") return "has an empty part";
  // URLs cannot contain these names: clients resolve them like those of folders, even percent-encoded.
  if (part === "." || part === "..") return `has the part "${part}", which URLs cannot contain`;
  if (isLonger(part, partLengthMax)) return `has a part of more than ${partLengthMax} characters`;
  if (!part.isWellFormed()) return "has a part that is not valid Unicode";
  if (controlCharacter.test(part)) return "has a control character";
  return undefined;
}

/** Counts characters instead of code units, like JSON Schema. */
function isLonger(text: string, characters: number): boolean {
  return text.length > characters && [...text].length > characters;
}

/** Reports whether an object is a namespace or below it. */
export function isWithin(object: Identifier, namespace: Identifier): boolean {
  return namespace.every((part, index) => object[index] === part);
}
