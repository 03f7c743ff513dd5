import { z } from "zod";
import { characters, entries, items, list, map, text } from "./bounds.ts";
import type { ErrorStatus } from "./errors.ts";
import { identifierLimits, problemOfIdentifier } from "./identifier.ts";

/**
 * Creates the schema of a word that the protocol accepts in any letter case, as PascalCase or snake_case, such as
 * `ExistOk` or `exist_ok`.
 */
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
      description: `One of ${words.join(", ")}; also accepted in any letter case and in snake_case.`,
      // Generators of clients fail for enums whose words differ only in their spelling.
      override: { enum: [...words] },
    });
}

/**
 * Creates the schema of an object that contains exactly one of its fields. An unknown field would be an action without an
 * effect. The document counts properties, because generators of clients skip schemas with `oneOf` next to properties.
 */
export function exactlyOneOf<Shape extends z.ZodRawShape>(shape: Shape) {
  const names = Object.keys(shape);
  return z
    .strictObject(shape)
    .refine((fields) => Object.values(fields).filter((each) => each !== undefined).length === 1, {
      message: `must have exactly one of ${names.join(", ")}`,
    })
    .meta({ override: { minProperties: 1, maxProperties: 1 } });
}

/**
 * An integer from 0 to 2^53-1. The protocol's type is int64, but integers that JSON cannot represent exactly are
 * rejected instead of rounded.
 */
export const count = z.int().min(0);

export const Identity = z
  .object({ api_key: text(characters.credential).optional(), auth_token: text(characters.credential).optional() })
  .meta({ id: "Identity", description: "Credentials, for callers that cannot set headers." });

export const Context = map(text(characters.path), entries.context).meta({
  id: "Context",
  description: "Free-form entries that the caller and the service exchange.",
});

/** The properties of an object in a request. */
export const Properties = map(text(characters.text), entries.properties);

/** The prefix of the parameters and properties that define a view. */
export const viewDefinitionPrefix = "materialized_view.";

/** The properties of a table in a request. Only CreateMaterializedView defines a view. */
export const TableProperties = Properties.superRefine((properties, context) => {
  const reserved = Object.keys(properties).find((name) => name.startsWith(viewDefinitionPrefix));
  if (reserved === undefined) return;
  context.addIssue({
    code: "custom",
    path: [reserved],
    message: "is reserved for views, which CreateMaterializedView defines",
  });
});

/**
 * The properties of an object in a response. They have no bounds, because an object may predate the bounds, and jobs
 * add properties while they run.
 */
export const AnsweredProperties = z.record(z.string(), z.string());

const { partsMax, partLengthMax, delimiterLengthMax, noControlCharacters } = identifierLimits;

/** The identifier of an object as a list of its parts. */
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

/** The identifier of an object in a path, for the OpenAPI document. `parseIdentifier` parses it. */
export const pathId = z
  .string()
  .min(1)
  .meta({ override: { pattern: noControlCharacters } })
  .describe("An identifier: its parts joined by the delimiter. The delimiter alone is the root namespace.");

/** The query parameter of every operation, for the OpenAPI document. `parseIdentifier` uses it. */
export const delimiter = z
  .string()
  .min(1)
  .max(delimiterLengthMax)
  .meta({ override: { pattern: noControlCharacters } })
  .describe("The delimiter between the parts of identifiers; `$` when absent.");

/** The fields that every request body may contain. */
export const commonRequest = {
  identity: Identity.optional(),
  context: Context.optional(),
  id: id.optional(),
};

export const branch = text(characters.name).optional().describe("The branch to use; the main branch when absent.");

/** The path of a field of a table. Dots separate nested fields; a segment that itself contains a dot is in backticks. */
export const fieldPath = text(characters.path).min(1);

/**
 * Creates the schema of changes of fields. Each field may have one change, because Lance would only apply the last one.
 *
 * @param pathOf Returns the path of the changed field.
 */
export function fieldChanges<Change extends z.ZodType>(
  change: Change,
  pathOf: (change: z.output<Change>) => string | undefined,
) {
  return list(change, items.columns)
    .min(1)
    .superRefine((changes, context) => {
      // A segment without a dot is the same field with and without backticks.
      const paths = changes.map((each) => pathOf(each)?.replaceAll(/`([^`.]+)`/g, "$1"));
      const seen = new Set<string | undefined>();
      const index = paths.findIndex((path) => seen.size === seen.add(path).size);
      if (index !== -1)
        context.addIssue({ code: "custom", path: [index], message: `changes the field ${paths[index]} a second time` });
    });
}

/** The columns that Lance itself adds. A table with a column of such a name would be unreadable. */
const reservedColumns = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"];

/** The name of a new column. */
export const columnName = text(characters.path)
  .min(1)
  .refine((name) => !reservedColumns.includes(name), `must not be one of ${reservedColumns.join(", ")}`);

/** The error statuses of operations that read a dataset; 406 means that the library for datasets is not installed. */
export const datasetReadErrors = [404, 406] as const satisfies readonly ErrorStatus[];
/** The error statuses of operations that change a dataset. */
export const datasetErrors = [...datasetReadErrors, 409] as const satisfies readonly ErrorStatus[];

/** Overrides the schema of a query parameter in the OpenAPI document, because parameters are text on the wire. */
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

/** Creates the schema of a list in a query, which is a repeated parameter. */
export function queryList<Item extends z.ZodType>(item: Item, itemsMax: number) {
  return z.preprocess((given) => (typeof given === "string" ? [given] : given), list(item, itemsMax).min(1));
}

/** Creates the schema of an integer in a query with a lower bound. */
export const queryInteger = (minimum: number) =>
  text(characters.path)
    .regex(/^-?\d+$/, "must be an integer")
    .transform(Number)
    .pipe(z.int().min(minimum))
    .meta(shownAs({ type: "integer", minimum, maximum: Number.MAX_SAFE_INTEGER }));

/** The page token and the maximum number of items of a list. */
export const pageQuery = {
  page_token: text(characters.token).optional().describe("The `page_token` of the previous response."),
  limit: queryInteger(1).optional().describe("The maximum number of items in the response, at least 1."),
};

/** The context that the service returns in every response that is an object. */
export const context = Context.optional();

export const pageResponse = {
  page_token: z.string().optional().describe("The token of the next page; absent on the last page."),
};
