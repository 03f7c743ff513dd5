/**
 * The bounds of the strings, maps and arrays of requests. All of them are defined here. They are part of the schemas
 * and thus of the OpenAPI document, and are checked before the values inside.
 */
import { z } from "zod";
import { problemOfSql } from "./sql.ts";

/** The maximum number of characters of a string. */
export const characters = {
  /** A name, such as that of a tag, a branch, an index or a type. */
  name: 1024,
  /** A path, such as that of a location, a manifest or a field. */
  path: 8 * 1024,
  /** A page token, which can contain the longest identifier in Base64. */
  token: 64 * 1024,
  /** A text, such as an expression, a filter or all properties together. */
  text: 256 * 1024,
  /** A document for the compute side, such as the definition of a view, a function or a manifest of code. */
  document: 1024 * 1024,
  /** A credential. The service itself rejects long ones with a specific error. */
  credential: 32 * 1024,
} as const;

/** The maximum number of items of an array. */
export const items = {
  /** The versions or tables that one request changes together. */
  batch: 1_000,
  ranges: 1_000,
  actions: 1_000,
  /** The columns of a table that one request names or changes. */
  columns: 10_000,
  /** The columns that one function computes. */
  outputs: 1_000,
  /** The numbers of a query vector, and the vectors of a query. */
  dimensions: 65_536,
  vectors: 1_024,
  /** The members of a full-text query at each level. */
  clauses: 256,
} as const;

/** The maximum number of entries of a map. */
export const entries = {
  properties: 1_000,
  context: 100,
} as const;

/** The maxima of numbers for which Lance allocates memory without checking its availability. */
export const numbers = {
  /** The rows that a vector search finds, including skipped and refined ones. */
  found: 1_000_000,
  /** The candidates that a search keeps, the partitions that it probes, and the values that it derives from one row. */
  candidates: 65_536,
  partitions: 1_048_576,
  /** The parts, bits, samples, iterations and neighbours of an index. */
  subVectors: 65_536,
  bits: 16,
  samples: 65_536,
  iterations: 10_000,
  neighbours: 1_024,
  tokenLength: 1_000_000,
  /** The documents in a block of a full-text index. */
  blockSize: 256,
  /** The seconds of the longest timeout of a job, which are 30 days. */
  jobTimeout: 2_592_000,
} as const;

/** The limits of a whole JSON body, which no schema can express. They are checked before the body is parsed. */
export interface BodyBounds {
  readonly bytes: number;
  /** The numbers, strings, arrays and other values, including nested ones. */
  readonly values: number;
  /** The keys of objects, including repeated ones. */
  readonly keys: number;
  readonly depth: number;
}

/** The limits by size: `large` for bodies with a batch, a vector or a document, `small` for all others. */
export const bodies = {
  small: { bytes: 64 * 1024, values: 8_192, keys: 4_096, depth: 128 },
  large: { bytes: 4 * 1024 * 1024, values: 262_144, keys: 65_536, depth: 128 },
} as const satisfies Record<string, BodyBounds>;
export type BodySize = keyof typeof bodies;

/**
 * Creates the schema of a string with at most `charactersMax` characters. Lone surrogates are rejected, because
 * databases and files cannot store them.
 */
export function text(charactersMax: number) {
  return z
    .string()
    .max(charactersMax)
    .refine((value) => value.isWellFormed(), "is not valid Unicode");
}

/** The schemas whose text Lance parses as SQL. A test verifies that the contracts use every one of them. */
export const sqlExpressions = z.registry<{ readonly language: "sql" }>();

/** Creates the schema of an SQL expression within the bounds that Lance can parse and evaluate. */
export function sqlExpression(charactersMax: number = characters.text) {
  return text(charactersMax)
    .superRefine((sql, context) => {
      const problem = problemOfSql(sql);
      if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
    })
    .register(sqlExpressions, { language: "sql" });
}

/** Creates the schema of an SQL expression that may also be one text of any length, because a text is not planned. */
export function sqlValue() {
  return sqlExpression(bodies.large.bytes).refine(
    (sql) => sql.length <= characters.text || /^'(?:[^']|'')*'$/.test(sql),
    `must have at most ${characters.text} characters, unless it is one text`,
  );
}

/** Creates the schema of an array with at most `itemsMax` items. Zod checks the length before the items. */
export function list<Item extends z.ZodType>(item: Item, itemsMax: number): z.ZodArray<Item> {
  return z.array(item).max(itemsMax);
}

/**
 * Creates the schema of an array of numbers. Zod reports every wrong item, which takes 200 ms for the longest vector, so
 * the items after the first wrong one are omitted.
 */
export function numberList(itemsMax: number) {
  return z.preprocess(
    (value) => {
      const wrong =
        Array.isArray(value) && value.length <= itemsMax ? value.findIndex((item) => !Number.isFinite(item)) : -1;
      return wrong < 0 ? value : (value as unknown[]).slice(0, wrong + 1);
    },
    list(z.number(), itemsMax),
  );
}

/**
 * Creates the schema of a map with at most `entriesMax` entries, whose keys and texts have at most `charactersMax`
 * characters in total.
 */
export function map<Value extends z.ZodType>(
  value: Value,
  entriesMax: number,
  charactersMax: number = characters.text,
): z.ZodRecord<z.ZodString, Value> {
  return z
    .record(text(characters.name), value)
    .refine((entries) => Object.keys(entries).length <= entriesMax, `must have at most ${entriesMax} entries`)
    .refine((entries) => charactersOf(entries) <= charactersMax, `must have at most ${charactersMax} characters`)
    .meta({ maxProperties: entriesMax });
}

function charactersOf(entries: Readonly<Record<string, unknown>>): number {
  return Object.entries(entries).reduce(
    (sum, [key, value]) => sum + key.length + (typeof value === "string" ? value.length : 0),
    0,
  );
}
