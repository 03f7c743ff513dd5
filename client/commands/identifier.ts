import {
  checkIdentifier,
  defaultDelimiter,
  formatIdentifier,
  type Identifier,
  jsonOrUndefined,
  parseIdentifier,
} from "@tiltyard/protocol";
import { z } from "zod";

const Parts = z.array(z.string());

/**
 * Reads an identifier that a user has typed: parts with `$` between them, or a JSON array of the parts, because names can
 * contain `$` too.
 *
 * @throws CatalogError InvalidInput
 */
export function readIdentifier(text: string): Identifier {
  const parts = text.startsWith("[") ? Parts.safeParse(jsonOrUndefined(text)).data : undefined;
  return parts === undefined ? parseIdentifier(text) : checkIdentifier(parts);
}

/** Shows an identifier in the form that {@link readIdentifier} reads. */
export function showIdentifier(identifier: Identifier): string {
  const isPlain = identifier.every((part) => !part.includes(defaultDelimiter) && !part.startsWith("["));
  return isPlain ? formatIdentifier(identifier) : JSON.stringify(identifier);
}
