/**
 * How much a request may hold: the one place for the bounds of what the protocol calls strings, maps and arrays. They
 * are in the schemas, and so in the OpenAPI document, and are checked before the values inside.
 */
import { z } from "zod";
import { problemOfSql } from "./sql.ts";

/** A request may have as many problems as values. No more than these are reported of a list or a map. */
export const problemsMax = 20;

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
  large: { bytes: 4 * 1024 * 1024, values: 262_144, keys: 131_072, depth: 128 },
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

/** An array of so many items at most. One that is too long is refused before its items are checked. */
export function list<Item extends z.ZodType>(item: Item, itemsMax: number): z.ZodArray<Item> {
  // The constructor cannot know what its definition is a list of.
  return new List({ type: "array", element: item, most: itemsMax }).max(itemsMax) as unknown as z.ZodArray<Item>;
}

/**
 * A map of so many entries at most, whose keys and texts have so many characters together. One that has more is refused
 * before its entries are checked.
 */
export function map<Value extends z.ZodType>(
  value: Value,
  entriesMax: number,
  charactersMax: number = characters.text,
): z.ZodRecord<z.ZodString, Value> {
  const keyType = text(characters.name);
  // The constructor cannot know what its definition is a map of.
  const made: unknown = new BoundedMap({ type: "record", keyType, valueType: value, most: entriesMax, charactersMax });
  return made as z.ZodRecord<z.ZodString, Value>;
}

type Payload = z.core.ParsePayload<unknown>;
type Bounded<Definition> = Definition & { readonly most: number };

/** An array whose items are checked until there are problems enough: zod itself collects those of all items. */
const List = z.core.$constructor<z.ZodArray, Bounded<z.core.$ZodArrayDef>>("BoundedList", (schema, definition) => {
  z.ZodArray.init(schema, definition);
  const parseAll = schema._zod.parse;
  schema._zod.parse = (payload: Payload, context) => {
    const { value } = payload;
    // What is no array, or too long a one, is refused by zod as a whole.
    if (!Array.isArray(value) || value.length > definition.most) return parseAll(payload as never, context);
    const parsed: unknown[] = [];
    for (const [index, item] of value.entries()) {
      parsed.push(parseInside(definition.element, index, item, payload, context));
      if (payload.issues.length >= problemsMax) break;
    }
    payload.value = parsed;
    return payload as never;
  };
});

const BoundedMap = z.core.$constructor<z.ZodRecord, Bounded<z.core.$ZodRecordDef> & { readonly charactersMax: number }>(
  "BoundedMap",
  (schema, definition) => {
    z.ZodRecord.init(schema, definition);
    const parseAll = schema._zod.parse;
    schema._zod.parse = (payload: Payload, context) => {
      const { value } = payload;
      if (typeof value !== "object" || value === null || Array.isArray(value))
        return parseAll(payload as never, context);
      const found = Object.entries(value);
      const { most, charactersMax } = definition;
      const isLong = found.length <= most && lengthOf(found) > charactersMax;
      if (found.length > most || isLong) {
        const message = `Too big: expected map to have <=${isLong ? `${charactersMax} characters` : `${most} entries`}`;
        payload.issues.push({ code: "custom", message, input: value, inst: schema, continue: false });
        return payload as never;
      }
      const parsed: Record<string, unknown> = {};
      for (const [key, each] of found) {
        parseInside(definition.keyType, key, key, payload, context);
        parsed[key] = parseInside(definition.valueType, key, each, payload, context);
        if (payload.issues.length >= problemsMax) break;
      }
      payload.value = parsed;
      return payload as never;
    };
    const toJsonSchema = schema._zod.processJSONSchema;
    schema._zod.processJSONSchema = (context, json, parameters) => {
      toJsonSchema?.(context, json, parameters);
      Object.assign(json, { maxProperties: definition.most });
    };
  },
);

function lengthOf(found: readonly (readonly [string, unknown])[]): number {
  return found.reduce((sum, [key, value]) => sum + key.length + (typeof value === "string" ? value.length : 0), 0);
}

/** Parses what stands at a place inside of a value, and adds its problems to those of the value. */
function parseInside(
  schema: z.core.$ZodType,
  at: string | number,
  value: unknown,
  into: Payload,
  context: z.core.ParseContextInternal,
): unknown {
  const inner = schema._zod.run({ value, issues: [] }, context);
  if (inner instanceof Promise) throw new Error("a schema of the protocol is synchronous");
  if (inner.issues.length > 0) into.issues.push(...z.core.util.prefixIssues(at, inner.issues));
  return inner.value;
}
