import { z } from "zod";

/**
 * The context in which requests, files and settings are parsed. Its messages follow the name of a value, as those of the
 * schemas' own rules do: `limit: must be at least 1`.
 */
export const parsing: z.core.ParseContext<z.core.$ZodIssue> = { error: requirementOf };

/**
 * Describes the problems of a value with their paths, such as `limit: must be at least 1`.
 *
 * @param whole The name of the value itself, for a problem without a path.
 */
export function problemsIn({ issues }: Pick<z.core.$ZodError, "issues">, whole: string): string[] {
  return issues.map(({ path, message }) => `${path.join(".") || whole}: ${message}`);
}

/** Returns what an invalid value must be; undefined for zod's own message. */
function requirementOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is required" : typeRequired(issue.expected, issue.input);
    case "invalid_value":
      return `${issue.input === undefined ? "is required; it " : ""}must be ${oneOf(issue.values)}`;
    case "too_small":
      return isEmpty(issue) ? "must not be empty" : `must ${bound(issue, issue.minimum, "at least", "more than")}`;
    case "too_big":
      return `must ${bound(issue, issue.maximum, "at most", "less than")}`;
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "unrecognized_keys":
      return `has no field ${issue.keys.join(", ")}`;
    case "invalid_union":
      if (issue.input === undefined) return "is required";
      return "options" in issue && Array.isArray(issue.options)
        ? `must be ${oneOf(issue.options)}`
        : "has no valid form";
    default:
      return undefined;
  }
}

const typeNames: ReadonlyMap<string, string> = new Map([
  ["string", "a string"],
  ["number", "a number"],
  ["int", "an integer"],
  ["boolean", "a boolean"],
  ["array", "a list"],
  ["object", "an object"],
  ["record", "an object"],
]);

function typeRequired(expected: string, input: unknown): string {
  const given = z.core.util.parsedType(input);
  const required = `must be ${typeNames.get(expected) ?? expected}`;
  return expected === "int" && given === "number" ? required : `${required}, not ${typeNames.get(given) ?? given}`;
}

function oneOf(values: readonly unknown[]): string {
  const shown = values.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  return shown.length === 1 ? `${shown[0]}` : `one of ${shown.join(", ")}`;
}

/** The units of the size of a value by its type. Other values are numbers. */
const units: ReadonlyMap<string, string> = new Map([
  ["string", "characters"],
  ["array", "items"],
  ["map", "entries"],
]);

type SizeIssue = z.core.$ZodRawIssue<z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig>;

function isEmpty(issue: z.core.$ZodRawIssue<z.core.$ZodIssueTooSmall>): boolean {
  return units.has(issue.origin) && issue.minimum === 1;
}

function bound(
  { origin, inclusive, exact }: SizeIssue,
  limit: number | bigint,
  inclusively: string,
  exclusively: string,
): string {
  const comparison = exact ? "exactly" : inclusive ? inclusively : exclusively;
  const unit = units.get(origin);
  return unit === undefined ? `be ${comparison} ${limit}` : `have ${comparison} ${limit} ${unit}`;
}
