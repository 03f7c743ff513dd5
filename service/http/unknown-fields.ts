import { type AnyContract, closest, delimiter, onlyReads } from "@tiltyard/protocol";
import { z } from "zod";
import {
  type FieldTree,
  fieldTreeOf,
  invalidInput,
  type UnknownField,
  withoutNulls,
} from "../domain/request-fields.ts";

/** A changing request with more unknown fields is refused, which bounds the comparison of names. */
const unknownMax = 100;
const ignoredMax = { names: 20, lengthOfName: 64 };

/** The names of fields that limit the effect of a request. Each group contains common names for the same concept. */
const limiting: readonly (readonly string[])[] = [
  ["predicate", "filter", "where", "condition", "only_if", "when", "sql"],
  ["branch", "branch_name", "ref"],
  ["version", "at_version", "version_number"],
  // The order decides which rows are the first ones.
  ["order_by", "sort", "sort_by"],
  ["dry_run", "preview", "validate_only", "simulate"],
];

type Part = "query" | "JSON body";

/**
 * Returns a function that removes the nulls of unset fields from a part of a request and checks its unknown fields. It
 * returns the ones to report in the log and in a response header, which newer clients may send.
 *
 * @throws CatalogError InvalidInput if an unknown field would have limited what the request changes or reads.
 */
export function checkFields(contract: AnyContract, part: Part): (given: unknown) => readonly string[] {
  const query = z.object({ ...contract.query.shape, delimiter: delimiter.optional() });
  /** The fields of the part. The derivation for all operations would be a twentieth of a start. */
  let tree: FieldTree | undefined;
  const [elsewhere, other] = part === "query" ? [contract.body, "JSON body"] : [query, "query"];
  const isStrict = contract.onRows || !onlyReads(contract);
  /** Reports whether the other part of the request has a field. Names in the query may have other meanings than in a body. */
  const isElsewhere = ({ path }: UnknownField) =>
    Object.hasOwn(elsewhere.shape, path) && (part === "query" || isLimiting(path));
  const hasOptions = part === "JSON body" && contract.body.def.catchall !== undefined;
  const isIgnored = ({ path, name }: UnknownField) => !hasOptions || path !== name;
  const problemOf = (field: UnknownField) =>
    isElsewhere(field)
      ? `${field.path}: belongs in the ${other}`
      : problemOfName(field, [
          ...(field.parent.fields?.keys() ?? []),
          ...(part === "query" ? Object.keys(contract.body.shape) : []),
        ]);

  return (given) => {
    tree ??= fieldTreeOf(part === "query" ? query : contract.body);
    const unknown = withoutNulls(tree, given);
    if (unknown.length === 0) return [];
    if (isStrict && unknown.length > unknownMax)
      throw invalidInput([`the request has more than ${unknownMax} fields that this operation does not have`]);
    // A read of metadata would answer for another branch or version.
    const refused = isStrict ? unknown : unknown.filter((field) => isElsewhere(field) && isLimiting(field.name));
    const problems = refused.flatMap((field) => problemOf(field) ?? []);
    if (problems.length > 0) throw invalidInput(problems);
    return unknown
      .filter(isIgnored)
      .slice(0, ignoredMax.names)
      .map(({ path }) => encodeURIComponent(path.toWellFormed()).slice(0, ignoredMax.lengthOfName));
  };
}

/** Explains why an unknown field must not be ignored; undefined if it may be. */
function problemOfName({ path, name }: UnknownField, known: readonly string[]): string | undefined {
  const folded = fold(name);
  const near = closest(folded, known.map(fold));
  const group = limiting.find((names) => names.some((each) => fold(each) === folded));
  const meant =
    known.find((each) => fold(each) === folded) ??
    known.find((each) => group?.includes(each)) ??
    known.find((each) => fold(each) === near);
  if (meant !== undefined) return `${path}: no such field; did you mean ${meant}?`;
  return group && `${path}: this operation has no such field and would ignore it; leave it out`;
}

function isLimiting(name: string): boolean {
  return limiting.flat().includes(name);
}

function fold(name: string): string {
  return name.replaceAll(/[_-]/g, "").toLowerCase();
}
