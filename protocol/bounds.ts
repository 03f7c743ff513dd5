/**
 * How much a request may hold: the one place for the bounds of what the protocol calls strings, maps and arrays. They
 * are in the schemas, and so in the OpenAPI document, and are checked before the values inside.
 */
import { z } from "zod";
import { problemOfSql } from "./sql.ts";

/** The most characters of a string. */
export const characters = {
  /** What is called by it: a tag, a branch, an index, a type. */
  name: 1024,
  /** Where something is: a location, a manifest, a field. */
  path: 8 * 1024,
  /** Where a list goes on: the longest identifier, in Base64. */
  token: 64 * 1024,
  /** What is said about something: an expression, a filter, all properties together. */
  text: 256 * 1024,
  /** What is handed on whole to the compute side: a view's definition, a function, a manifest of code. */
  document: 1024 * 1024,
  /** A credential. The service takes shorter ones, and says so itself. */
  credential: 32 * 1024,
} as const;

/** The most items of an array. */
export const items = {
  /** Versions that are committed, or tables that are changed, together. */
  batch: 10_000,
  ranges: 1_000,
  actions: 1_000,
  /** Columns of a table that one request names or changes. */
  columns: 10_000,
  /** Numbers of a query's vector, and how many such vectors a query may have. */
  dimensions: 65_536,
  vectors: 1_024,
  /** Members of a full-text query at one of its levels. */
  clauses: 256,
} as const;

/** The most entries of a map. */
export const entries = {
  properties: 1_000,
  context: 100,
} as const;

/** The largest numbers that Lance takes memory for, which it does before it looks whether there is any. */
export const numbers = {
  /** Rows that a search among vectors finds, with those that it skips and those that it compares again. */
  found: 1_000_000,
  /** Candidates that a search keeps, partitions that it looks into, and what it makes of one row. */
  candidates: 65_536,
  partitions: 1_048_576,
  /** Parts, bits, samples, iterations and neighbours of an index. */
  subVectors: 65_536,
  bits: 16,
  samples: 65_536,
  iterations: 10_000,
  neighbours: 1_024,
  tokenLength: 1_000_000,
  /** Documents in a block of a full-text index. */
  blockSize: 256,
} as const;

/** The limits of a JSON body as a whole, which no schema has: they are checked before the body is parsed. */
export interface BodyBounds {
  readonly bytes: number;
  /** Numbers, strings, arrays, ..., with those inside of others. */
  readonly values: number;
  /** Keys of objects, whether they repeat or not. */
  readonly keys: number;
  readonly depth: number;
}

/** `small` for what needs no more, `large` where a batch, a vector or a document does. */
export const bodies = {
  small: { bytes: 64 * 1024, values: 8_192, keys: 4_096, depth: 128 },
  large: { bytes: 4 * 1024 * 1024, values: 262_144, keys: 65_536, depth: 128 },
} as const satisfies Record<string, BodyBounds>;
export type BodySize = keyof typeof bodies;

/** A string of so many characters at most. Half of a surrogate pair is no text: no database and no file keeps it. */
export function text(charactersMax: number) {
  return z
    .string()
    .max(charactersMax)
    .refine((value) => value.isWellFormed(), "is not valid Unicode");
}

/** Schemas whose text Lance reads as SQL. A test finds every one of them in the contracts. */
export const sqlExpressions = z.registry<{ readonly language: "sql" }>();

/** An SQL expression within the bounds that Lance can parse and evaluate. */
export function sqlExpression(charactersMax: number = characters.text) {
  return text(charactersMax)
    .superRefine((sql, context) => {
      const problem = problemOfSql(sql);
      if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
    })
    .register(sqlExpressions, { language: "sql" });
}

/** An array of at most `itemsMax` items. Zod checks the length before the items. */
export function list<Item extends z.ZodType>(item: Item, itemsMax: number): z.ZodArray<Item> {
  return z.array(item).max(itemsMax);
}

/** A map of at most `entriesMax` entries, whose keys and texts have at most `charactersMax` characters together. */
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
