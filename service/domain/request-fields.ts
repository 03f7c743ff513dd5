import { CatalogError } from "@tiltyard/protocol";
import { z } from "zod";

/** The named fields of a JSON value that a schema accepts. Maps with arbitrary names have none. */
export interface FieldTree {
  /** The fields of an object; undefined if the schema accepts no object with named fields. */
  readonly fields: ReadonlyMap<string, Field> | undefined;
  /** The items of an array; undefined if they have no named fields. */
  readonly items: FieldTree | undefined;
}

interface Field {
  readonly tree: FieldTree;
  /** Reports whether null is a value of the field. In other fields it means that the field is absent. */
  readonly acceptsNull: boolean;
}

export interface UnknownField {
  /** The name with its enclosing fields, such as `query.filtr`. */
  readonly path: string;
  readonly name: string;
  readonly parent: FieldTree;
}

/** Derives the fields of a schema. The tree of a recursive schema refers to itself. */
export function fieldTreeOf(schema: z.ZodType): FieldTree {
  const trees = new Map<z.ZodType, FieldTree>();
  return derive(schema);

  function derive(of: z.ZodType): FieldTree {
    const present = trees.get(of);
    if (present !== undefined) return present;
    const tree: { -readonly [Name in keyof FieldTree]: FieldTree[Name] } = { fields: undefined, items: undefined };
    trees.set(of, tree);
    const structures = structuresIn(of);
    const shapes = structures.flatMap((each) => (each instanceof z.ZodObject ? Object.entries(each.shape) : []));
    if (structures.some((each) => each instanceof z.ZodObject))
      tree.fields = new Map(
        shapes.map(([name, field]) => [name, { tree: derive(field), acceptsNull: field.isNullable() }]),
      );
    const items = structures
      .flatMap((each) => (each instanceof z.ZodArray ? [each.element as z.ZodType] : []))
      .filter((item) => structuresIn(item).length > 0);
    if (items.length > 0) tree.items = derive(items.length === 1 ? (items[0] ?? z.never()) : z.union(items));
    return tree;
  }
}

/**
 * Removes the fields of a JSON value that are null but whose schema has no null, because clients send null for unset
 * fields. Values of maps and items of arrays remain.
 *
 * @returns The fields that the schema does not have.
 */
export function withoutNulls(tree: FieldTree, value: unknown): readonly UnknownField[] {
  const unknown: UnknownField[] = [];
  visit(tree, value, "");
  return unknown;

  function visit(parent: FieldTree, given: unknown, path: string): void {
    if (typeof given !== "object" || given === null) return;
    if (Array.isArray(given)) {
      if (parent.items !== undefined) for (const item of given) visit(parent.items, item, path);
      return;
    }
    if (parent.fields === undefined) return;
    for (const [name, inner] of Object.entries(given)) {
      const field = parent.fields.get(name);
      if (inner === null) {
        if (field?.acceptsNull !== true) Reflect.deleteProperty(given, name);
      } else if (field === undefined) unknown.push({ path: `${path}${name}`, name, parent });
      else if (typeof inner === "object") visit(field.tree, inner, `${path}${name}.`);
    }
  }
}

function structuresIn(schema: z.ZodType): readonly (z.ZodObject | z.ZodArray)[] {
  if (schema instanceof z.ZodObject || schema instanceof z.ZodArray) return [schema];
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((each) => structuresIn(each as z.ZodType));
  if (schema instanceof z.ZodPipe) return [schema.in, schema.out].flatMap((each) => structuresIn(each as z.ZodType));
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return structuresIn(schema.unwrap() as z.ZodType);
  return [];
}

/** The maximum number of problems in one response. A request can have as many problems as values. */
const reportedMax = 20;

/** Creates the error of a request. @param describe Returns the text of a problem, if it is reported. */
export function invalidInput<Problem>(problems: readonly Problem[], describe: (problem: Problem) => string = String) {
  const rest = problems.length - reportedMax;
  const reported = problems.slice(0, reportedMax).map((problem) => describe(problem));
  return new CatalogError("InvalidInput", [...reported, ...(rest > 0 ? [`and ${rest} more`] : [])].join("; "));
}

/** Returns a value of a request as JSON. @throws CatalogError InvalidInput for one that nests deeper than the stack allows. */
export function jsonOf(value: unknown, field: string): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw new CatalogError("InvalidInput", `${field}: nests too deep`, { cause });
  }
}
