import { closest, defaultDelimiter } from "@tiltyard/protocol";
import { operations } from "../operations.ts";

const templates = operations.map(({ contract }) => contract.path);

/** Returns the path of an operation that an unknown path most likely means, or undefined if none is close. */
export function suggestedPath(path: string): string | undefined {
  return firstOf((template) => withDelimiter(path, template)) ?? firstOf((template) => withoutTypo(path, template));
}

function firstOf(suggest: (template: string) => string | undefined): string | undefined {
  return templates.map(suggest).find((suggested) => suggested !== undefined);
}

/** Replaces the slashes between the parts of an identifier, as in `/v1/table/demo/numbers/describe`. */
function withDelimiter(path: string, template: string): string | undefined {
  const [start = "", end = "", ...more] = template.split("{id}");
  const id = path.slice(start.length, path.length - end.length);
  const fits = path.startsWith(start) && path.endsWith(end) && /^[^/]+(?:\/[^/]+)+$/.test(id);
  return fits && end !== "" && more.length === 0 ? start + id.replaceAll("/", defaultDelimiter) + end : undefined;
}

/** Corrects a misspelled operation. Only the fixed segments are compared, because identifiers may be long. */
function withoutTypo(path: string, template: string): string | undefined {
  const given = path.split("/");
  const segments = template.split("/");
  if (segments.length !== given.length || given.slice(1).includes("")) return undefined;
  const isFixed = (index: number) => segments[index]?.startsWith("{") === false;
  const fixed = (each: readonly string[]) => each.filter((_, index) => isFixed(index)).join("/");
  if (closest(fixed(given), [fixed(segments)]) === undefined) return undefined;
  return segments.map((segment, index) => (isFixed(index) ? segment : given[index])).join("/");
}
