import { type AnyContract, closest, onlyReads } from "@tiltyard/protocol";
import { createMiddleware } from "hono/factory";
import { z } from "zod";
import { invalidInput } from "../../domain/invalid-input.ts";
import type { AppEnv } from "../context.ts";
import { isArrow } from "./json-body.ts";

/** The response header that lists the fields of a request that had no effect. */
const ignoredHeader = "x-ignored-fields";
/** A changing request with more unknown fields is refused, which bounds the comparison of names. */
const unknownMax = 100;
const ignoredMax = { names: 20, lengthOfName: 64 };

/** The names of fields that limit the effect of a request. Each group contains common names for the same concept. */
const limiting = [
  ["predicate", "filter", "where", "condition", "only_if", "when", "sql"],
  ["branch", "branch_name", "ref"],
  ["version", "at_version", "version_number"],
  ["dry_run", "preview", "validate_only", "simulate"],
] as const;

interface UnknownField {
  /** The name with its enclosing fields, such as `query.filtr`. */
  readonly path: string;
  readonly name: string;
  /** The names that the object may contain. */
  readonly known: readonly string[];
  /** The part of a request that has this field. */
  readonly belongsIn?: "query" | "JSON body" | undefined;
}

/**
 * Rejects unknown fields that would have limited what the request changes or reads. Reports all other unknown fields,
 * which newer clients may send, in the log and in a response header.
 *
 * @throws CatalogError InvalidInput
 */
export function knownFields(contract: AnyContract) {
  const { query, body } = contract;
  const inQuery = [...Object.keys(query.shape), "delimiter"];
  const inBody = Object.keys(body.shape);
  const isStrict = contract.onRows || !onlyReads(contract);
  return createMiddleware<AppEnv>(async function knownFields(c, next) {
    const fields = Object.keys(c.req.query()).filter((name) => !inQuery.includes(name));
    const unknown = [
      ...fields.map(
        (name): UnknownField => ({
          ...{ path: name, name, known: [...inQuery, ...inBody] },
          belongsIn: inBody.includes(name) ? "JSON body" : undefined,
        }),
      ),
      ...(isArrow(contract, c) ? [] : unknownIn(body, await c.req.json(), "")).map(
        (field): UnknownField =>
          isLimiting(field.path) && inQuery.includes(field.path) ? { ...field, belongsIn: "query" } : field,
      ),
    ];
    if (unknown.length > 0) {
      if (isStrict && unknown.length > unknownMax)
        throw invalidInput([`the request has more than ${unknownMax} fields that this operation does not have`]);
      // A read of metadata would answer for another branch or version.
      const refused = isStrict ? unknown : unknown.filter(({ name, belongsIn }) => belongsIn && isLimiting(name));
      const problems = refused.flatMap((field) => problemOf(field) ?? []);
      if (problems.length > 0) throw invalidInput(problems);
      const ignored = [
        ...new Set(
          unknown
            .slice(0, ignoredMax.names)
            .map(({ path }) => encodeURIComponent(path.toWellFormed()).slice(0, ignoredMax.lengthOfName)),
        ),
      ];
      c.set("ignoredFields", ignored);
      c.header(ignoredHeader, ignored.join(", "));
    }
    await next();
  });
}

/**
 * Finds the fields of a JSON value that its schema lacks. A null counts as absent, because clients send it for unset
 * fields.
 */
function unknownIn(schema: z.ZodType, value: unknown, path: string): UnknownField[] {
  if (typeof value !== "object" || value === null) return [];
  const options = structuresIn(schema);
  if (Array.isArray(value)) {
    const items = options.filter((each) => each instanceof z.ZodArray).map(({ element }) => element as z.ZodType);
    const structured = z.union(items.filter((item) => structuresIn(item).length > 0));
    return structured.options.length === 0 ? [] : value.flatMap((item) => unknownIn(structured, item, path));
  }
  const objects = options.filter((each) => each instanceof z.ZodObject);
  if (objects.length === 0) return [];
  const shape: Readonly<Record<string, z.ZodType>> = Object.assign({}, ...objects.map((each) => each.shape));
  const known = Object.keys(shape);
  return Object.entries(value).flatMap(([name, inner]) => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (field !== undefined) return unknownIn(field, inner, `${path}${name}.`);
    return inner === null ? [] : { path: `${path}${name}`, name, known };
  });
}

/** Returns the objects and arrays that a schema accepts. Maps with arbitrary names are not included. */
function structuresIn(schema: z.ZodType): (z.ZodObject | z.ZodArray)[] {
  if (schema instanceof z.ZodObject || schema instanceof z.ZodArray) return [schema];
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((each) => structuresIn(each as z.ZodType));
  if (schema instanceof z.ZodPipe) return [schema.in, schema.out].flatMap((each) => structuresIn(each as z.ZodType));
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return structuresIn(schema.unwrap() as z.ZodType);
  return [];
}

/** Explains why an unknown field must not be ignored; undefined if it may be. */
function problemOf({ path, name, known, belongsIn }: UnknownField): string | undefined {
  const folded = fold(name);
  if (belongsIn !== undefined) return `${path}: belongs in the ${belongsIn}`;
  const group = limiting.find((names) => names.some((each) => fold(each) === folded));
  const meant =
    known.find((each) => fold(each) === folded) ??
    known.find((each) => group?.some((synonym) => synonym === each)) ??
    known.find((each) => fold(each) === closest(folded, known.map(fold)));
  if (meant !== undefined) return `${path}: no such field; did you mean ${meant}?`;
  return group && `${path}: this operation has no such field and would ignore it; leave it out`;
}

function isLimiting(name: string): boolean {
  return limiting.some((names) => names.some((each) => each === name));
}

function fold(name: string): string {
  return name.replaceAll(/[_-]/g, "").toLowerCase();
}
