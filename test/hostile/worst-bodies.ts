/** Generates the worst bodies that the published schema of an operation allows. */
import { kept } from "./kept.ts";

/** A schema of the OpenAPI document. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maxLength?: number;
  readonly maxProperties?: number;
}

export type Resolve = (schema: JsonSchema) => JsonSchema;

/** The limits of a whole body, as the document's description specifies them. */
export interface Budget {
  readonly bytes: number;
  readonly values: number;
  readonly keys: number;
  readonly depth: number;
}

/** The placeholder for a value in a body. */
const here = "@here@";
/** The maximum number of levels to which recursive schemas are followed. */
const placeDepthMax = 5;

/** A value in a body, and the enclosing body with `here` in its place. */
interface Place {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly around: (inside: unknown) => unknown;
}

/** Generates the worst JSON texts for the arrays, maps and texts of a schema, each with a name that describes its problem. */
export function* worstBodies(schema: JsonSchema, resolve: Resolve, budget: Budget): Generator<[string, string]> {
  for (const place of placesIn({ name: "body", schema, around: (inside) => inside }, resolve, 0)) {
    const { name, around } = place;
    const own = real(place.schema, resolve);
    const [head = "", tail = ""] = JSON.stringify(around(here)).replaceAll(counter, "0").split(JSON.stringify(here));
    const fits = { ...budget, bytes: budget.bytes - head.length - tail.length };
    const within = (text: string) => head + text + tail;
    if (own.type === "array") {
      const item = own.items ?? {};
      const most = Math.max(1, own.maxItems ?? Number.POSITIVE_INFINITY);
      for (const small of ["{}", "1", '""', "[]"]) {
        yield [
          `${name}: ${small} as often as bytes allow`,
          within(list(small, { ...fits, values: Infinity, keys: Infinity })),
        ];
        yield [`${name}: ${small} as often as the bounds allow`, within(list(small, fits, most))];
      }
      for (const [kind] of (kindsOf(real(item, resolve)) ?? [0]).entries()) {
        const valid = JSON.stringify(sample(item, resolve, kind));
        yield [`${name}: valid items of kind ${kind}`, within(list(valid, fits, most))];
      }
      yield [`${name}: almost valid items`, within(list(almost(item, resolve), fits, most))];
    } else if (own.type === "object" && typeof own.additionalProperties === "object") {
      const most = own.maxProperties ?? Number.POSITIVE_INFINITY;
      const value = JSON.stringify(sample(own.additionalProperties, resolve));
      yield [
        `${name}: wrong entries as often as bytes allow`,
        within(entries("1", { ...fits, values: Infinity, keys: Infinity })),
      ];
      yield [`${name}: wrong entries as often as the bounds allow`, within(entries("[]", fits, most))];
      yield [`${name}: valid entries as often as the bounds allow`, within(entries(value, fits, most))];
      yield [`${name}: one key, repeated`, within(`{${repeat(`"a":${value}`, fits, 2)}}`)];
    } else if (own.type === "string" && own.enum === undefined) {
      const most = Math.min(own.maxLength ?? Number.POSITIVE_INFINITY, fits.bytes / 6 - 2);
      yield [`${name}: a text of all bytes`, within(`"${"x".repeat(fits.bytes - 2)}"`)];
      yield [`${name}: the longest text, escaped`, within(`"${"\\u00e9".repeat(most)}"`)];
    }
  }
}

/** Generates bodies that are bad regardless of the schema, with names like those of {@link worstBodies}. */
export function* bodiesBadForAnySchema(budget: Budget): Generator<[string, string]> {
  const { bytes, depth, keys } = budget;
  const free = { ...budget, values: Infinity, keys: Infinity };
  yield ["no JSON", "[1,".repeat(bytes / 3)];
  yield ["deep arrays", "[".repeat(bytes / 2) + "]".repeat(bytes / 2)];
  yield ["deep objects", `${'{"a":'.repeat(bytes / 6)}1${"}".repeat(bytes / 6)}`];
  yield [
    "as deep as allowed, as often as allowed",
    `{"x":${list("[".repeat(depth - 2) + "]".repeat(depth - 2), budget)}}`,
  ];
  yield ["many numbers", `{"x":${list("1", { ...free, bytes: bytes - 6 })}}`];
  yield ["as many numbers as allowed", `{"x":${list("1", { ...budget, values: budget.values - 2 })}}`];
  yield ["one number", `{"x":${"1".repeat(bytes - 6)}}`];
  yield ["many keys", entries("1", free)];
  yield ["as many keys as allowed", entries("1", budget)];
  yield ["long keys", `{${Array.from({ length: 16 }, (_, key) => `"${key}${"k".repeat(bytes / 16 - 12)}":1`).join()}}`];
  yield ["one key, repeated", `{${repeat('"a":1', free)}}`];
  yield ["keys that look like the prototype", `{${repeat('"\\u005f_proto_a":1', { ...budget, keys: keys - 1 })}}`];
  yield ["escapes", `{"x":"${"\\u0041".repeat(bytes / 6 - 2)}"}`];
  yield ["no text", "\\".repeat(bytes)];
  yield ["blanks", " ".repeat(bytes)];
}

/** Finds the arrays, maps and strings of a schema, each with a valid enclosing body. */
function* placesIn(place: Place, resolve: Resolve, depth: number): Generator<Place> {
  const own = real(place.schema, resolve);
  const inside = (name: string, schema: JsonSchema, around: (inside: unknown) => unknown): Place => ({
    name: `${place.name}.${name}`,
    schema,
    around: (each) => place.around(around(each)),
  });
  if (["array", "string"].includes(`${own.type}`)) yield place;
  else if (own.type === "object" && typeof own.additionalProperties === "object") yield place;
  if (depth === placeDepthMax) return;
  if (own.items !== undefined)
    yield* placesIn(
      inside("0", own.items, (each) => [each]),
      resolve,
      depth + 1,
    );
  for (const [name, schema] of Object.entries(own.properties ?? {})) {
    const base = kindsOf(own) === undefined ? sample(own, resolve) : {};
    yield* placesIn(
      inside(name, schema, (each) => ({ ...(base as object), [name]: each })),
      resolve,
      depth + 1,
    );
  }
}

/** Returns the schema without its nullable alternative. */
function real(schema: JsonSchema, resolve: Resolve): JsonSchema {
  const own = resolve(schema);
  const variant = own.anyOf?.find(({ type }) => type !== "null");
  return variant === undefined ? own : real(variant, resolve);
}

/** Returns the names of the fields of an object that has exactly one of them; undefined for other schemas. */
function kindsOf({ properties, maxProperties }: JsonSchema): readonly string[] | undefined {
  return properties !== undefined && maxProperties === 1 ? Object.keys(properties) : undefined;
}

/** The placeholder for a value that differs each time. */
const counter = "@number@";
let lists = 0;

/** Returns the smallest value that a schema accepts. @param kind The index of the alternative, if several exist. */
export function sample(schema: JsonSchema, resolve: Resolve, kind = 0): unknown {
  const own = real(schema, resolve);
  if (own.enum !== undefined) return own.enum[0];
  const type = [own.type].flat().find((each) => each !== "null");
  if (type === "array") return Array.from({ length: own.minItems ?? 0 }, () => sample(own.items ?? {}, resolve));
  if (type === "object") {
    const required = [...(own.required ?? []), ...(kindsOf(own)?.slice(kind, kind + 1) ?? [])];
    const fields = required.map((name) => [name, sample(own.properties?.[name] ?? {}, resolve, kind)]);
    // The first kind creates an object, and the others change existing ones.
    const id = kind === 0 ? [kept.namespace, `t_${counter}`] : kept.table.split("$");
    return { ...Object.fromEntries(fields), ...(own.properties?.id !== undefined && { id }) };
  }
  if (type === "integer" || type === "number") return own.minimum ?? 1;
  return type === "boolean" ? true : `x${counter}`;
}

/** Returns a value that contains every field, each with a wrong value. */
function almost(schema: JsonSchema, resolve: Resolve): string {
  const own = real(schema, resolve);
  if (own.type !== "object") return own.type === "string" ? "1" : '"x"';
  const names = Object.keys(own.properties ?? {});
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, { x: [0] }])));
}

function list(item: string, budget: Budget, most = Number.POSITIVE_INFINITY): string {
  return `[${repeat(item, budget, 1, most)}]`;
}

function entries(value: string, budget: Budget, most = Number.POSITIVE_INFINITY): string {
  const length = Math.floor(Math.min(most, budget.keys - 8, budget.values / 2, budget.bytes / (value.length + 8)));
  return `{${Array.from({ length }, (_, key) => `"${key.toString(36)}":${value}`).join()}}`;
}

/** Repeats a text as often as the limits allow, separated by commas. */
function repeat(text: string, { bytes, values, keys }: Budget, more = 1, most = Number.POSITIVE_INFINITY): string {
  const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0;
  const ofOne = { values: more + count(/[,[{]/g), keys: Math.max(1, count(/:/g)) };
  const times = Math.min(
    most,
    (bytes - 16) / (text.length + 1),
    (values - 64) / ofOne.values,
    (keys - 64) / ofOne.keys,
  );
  lists += 1;
  const numbered = (index: number) => (text.includes(counter) ? text.replaceAll(counter, `${lists}_${index}`) : text);
  return Array.from({ length: Math.max(1, Math.floor(times)) }, (_, index) => numbered(index)).join();
}
