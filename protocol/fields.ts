import { z } from "zod";
import { characters, entries, list, map, text } from "./bounds.ts";
import type { ErrorStatus } from "./errors.ts";
import { identifierLimits, problemOfIdentifier } from "./identifier.ts";

/** An optional field of a request: generated clients send `null` for what they leave out. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** A word that the protocol takes in any letter case and in PascalCase or snake_case, e.g. `ExistOk`, `exist_ok`. */
export function word<const Words extends readonly [string, ...string[]]>(words: Words) {
  const fold = (given: string) => given.replaceAll("_", "").toLowerCase();
  const byFolded = new Map<string, Words[number]>(words.map((each) => [fold(each), each]));
  return text(characters.name)
    .transform((given, context): Words[number] => {
      const found = byFolded.get(fold(given));
      if (found !== undefined) return found;
      context.addIssue({ code: "custom", message: `must be one of ${words.join(", ")}` });
      return z.NEVER;
    })
    .meta({
      description: `One of ${words.join(", ")}; case-insensitive, PascalCase or snake_case.`,
      override: { enum: [...new Set(words.flatMap((each) => [each, snakeCase(each)]))] },
    });
}

function snakeCase(word: string): string {
  return word.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
}

/** An object that has exactly one of its fields, each of them an object itself. */
export function exactlyOneOf<Shape extends z.ZodRawShape>(shape: Shape) {
  const names = Object.keys(shape);
  return z
    .object(shape)
    .refine((fields) => Object.values(fields).filter((each) => each !== undefined).length === 1, {
      message: `must have exactly one of ${names.join(", ")}`,
    })
    .meta({
      override: { oneOf: names.map((name) => ({ required: [name], properties: { [name]: { type: "object" } } })) },
    });
}

/** An integer from 0 to 2^53-1. The protocol says int64: what JSON cannot carry exactly is refused, never rounded. */
export const count = z.int().min(0);

export const Identity = z
  .object({ api_key: optional(text(characters.credential)), auth_token: optional(text(characters.credential)) })
  .meta({ id: "Identity", description: "Credentials, for callers that cannot set headers." });

export const Context = map(text(characters.path), entries.context).meta({
  id: "Context",
  description: "Free-form entries that a caller and the service hand each other.",
});

/** What a request may say about an object. */
export const Properties = map(text(characters.text), entries.properties);

/** What is known of an object: what made it may have had other bounds, and jobs add to it as they go on. */
export const AnsweredProperties = z.record(z.string(), z.string());

const { partsMax, partLengthMax, delimiterLengthMax, noControlCharacters } = identifierLimits;

/** An object's identifier as a list of its parts. */
export const id = list(z.string(), partsMax)
  .superRefine((parts, context) => {
    const problem = problemOfIdentifier(parts);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  })
  .meta({
    override: {
      maxItems: partsMax,
      items: { type: "string", minLength: 1, maxLength: partLengthMax, pattern: noControlCharacters },
    },
  });

/** An object's identifier in a path, for the OpenAPI document: `parseIdentifier` reads it. */
export const pathId = z
  .string()
  .min(1)
  .meta({ override: { pattern: noControlCharacters } })
  .describe("An identifier, its parts joined by the delimiter; the delimiter alone is the root.");

/** The query parameter of every operation, for the OpenAPI document: `parseIdentifier` reads it. */
export const delimiter = z
  .string()
  .min(1)
  .max(delimiterLengthMax)
  .meta({ override: { pattern: noControlCharacters } })
  .describe("Joins the parts of identifiers; $ when absent.");

/** The fields that every request body may have. */
export const commonRequest = {
  identity: optional(Identity),
  context: optional(Context),
  id: optional(id),
};

export const branch = optional(text(characters.name)).describe("The branch to use; the main branch when absent.");

/** A field of a table: nested fields behind dots, and a segment that has a dot itself in backticks. */
export const fieldPath = text(characters.path).min(1);

/** Columns that Lance itself makes: a table that had one of these could not be read. */
const reservedColumns = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"];

/** What a new column is called. */
export const columnName = text(characters.path)
  .min(1)
  .refine((name) => !reservedColumns.includes(name), `must not be one of ${reservedColumns.join(", ")}`);

/** The statuses of what reads a dataset: 406 where the library for that is not installed. */
export const datasetReadErrors = [404, 406] as const satisfies readonly ErrorStatus[];
/** The statuses of what changes one. */
export const datasetErrors = [...datasetReadErrors, 409] as const satisfies readonly ErrorStatus[];

/** How the OpenAPI document shows a query parameter, which is text on the wire. */
export function shownAs(shown: Readonly<Record<string, unknown>>) {
  return {
    override: ({ jsonSchema }: { readonly jsonSchema: Record<string, unknown> }) => {
      for (const name of Object.keys(jsonSchema)) if (name !== "description") delete jsonSchema[name];
      Object.assign(jsonSchema, shown);
    },
  };
}

/** A boolean in a query. */
export const queryBoolean = z
  .enum(["true", "false"])
  .transform((text) => text === "true")
  .meta(shownAs({ type: "boolean" }));

/** A list in a query, as a parameter that repeats. */
export function queryList<Item extends z.ZodType>(item: Item, itemsMax: number) {
  return z.preprocess((given) => (typeof given === "string" ? [given] : given), list(item, itemsMax).min(1));
}

/** An integer in a query, from a least one on. */
export const queryInteger = (minimum: number) =>
  text(characters.path)
    .regex(/^-?\d+$/, "must be an integer")
    .transform(Number)
    .pipe(z.int().min(minimum))
    .meta(shownAs({ type: "integer", minimum, maximum: Number.MAX_SAFE_INTEGER }));

/** Where a list goes on, and how many items it may answer. */
export const pageQuery = {
  page_token: text(characters.token).optional().describe("The `page_token` of the answer before this one."),
  limit: queryInteger(1).optional().describe("The most items to answer, from 1 on."),
};

/** What the service hands back to a caller, in any answer that is an object. */
export const context = Context.optional();

export const pageResponse = {
  page_token: z.string().optional().describe("Present when there are more items: ask again with it."),
};
