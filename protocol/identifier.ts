import { CatalogError } from "./errors.ts";

/** The parts of an object's identifier, outermost namespace first; `[]` is the root namespace. */
export type Identifier = readonly string[];

/** Joins the parts of an identifier in a path when the request names no other delimiter. */
export const defaultDelimiter = "$";

/** What the text of an identifier and of a delimiter may be: the rules below, for the OpenAPI document. */
export const identifierLimits = {
  partsMax: 32,
  partLengthMax: 256,
  delimiterLengthMax: 16,
  /** As a regular expression of JSON Schema, which has no name for them in every dialect. */
  noControlCharacters: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
} as const;

const { partsMax, partLengthMax, delimiterLengthMax } = identifierLimits;
const controlCharacter = /\p{Cc}/u;

/**
 * Splits the `id` of a path into its parts. An id that equals the delimiter is the root namespace.
 *
 * @throws CatalogError InvalidInput when the delimiter or a part is not valid.
 */
export function parseIdentifier(id: string, delimiter: string = defaultDelimiter): Identifier {
  checkDelimiter(delimiter);
  return id === delimiter ? [] : checkIdentifier(id.split(delimiter));
}

/** @throws CatalogError InvalidInput for what cannot join the parts of identifiers. */
export function checkDelimiter(delimiter: string): string {
  if (delimiter === "" || isLonger(delimiter, delimiterLengthMax) || controlCharacter.test(delimiter))
    throw new CatalogError(
      "InvalidInput",
      `delimiter: must have 1 to ${delimiterLengthMax} characters, none of them a control character`,
    );
  return delimiter;
}

/** Writes an identifier as the single string that `parseIdentifier` reads. */
export function formatIdentifier(identifier: Identifier, delimiter: string = defaultDelimiter): string {
  return identifier.length === 0 ? delimiter : identifier.join(delimiter);
}

/** @throws CatalogError InvalidInput that names the first rule that the identifier breaks. */
export function checkIdentifier(identifier: Identifier): Identifier {
  const problem = problemOfIdentifier(identifier);
  if (problem !== undefined) throw new CatalogError("InvalidInput", `id: ${problem}`);
  return identifier;
}

/** The first rule that an identifier breaks; undefined for a valid one. */
export function problemOfIdentifier(identifier: Identifier): string | undefined {
  if (identifier.length > partsMax) return `has ${identifier.length} parts, at most ${partsMax} are allowed`;
  return identifier.map(problemOfPart).find((problem) => problem !== undefined);
}

function problemOfPart(part: string): string | undefined {
  if (part === "") return "has an empty part";
  if (isLonger(part, partLengthMax)) return `has a part of more than ${partLengthMax} characters`;
  if (!part.isWellFormed()) return "has a part that is not valid Unicode";
  if (controlCharacter.test(part)) return "has a control character";
  return undefined;
}

/** Counts characters, which is what a JSON Schema counts: some of them are two of JavaScript's code units. */
function isLonger(text: string, characters: number): boolean {
  return text.length > characters && [...text].length > characters;
}
