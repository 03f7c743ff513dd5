import { zValidator } from "@hono/zod-validator";
import { type AnyContract, type AnyRequest, CatalogError, formatIdentifier, parsing } from "@tiltyard/protocol";
import type { MiddlewareHandler } from "hono";
import { z } from "zod";
import { invalidInput } from "../domain/request-fields.ts";
import type { AppContext, AppEnv, Target } from "./context.ts";
import { isArrow } from "./json-body.ts";
import { checkFields } from "./unknown-fields.ts";

interface Validated {
  readonly fields: Readonly<Record<string, unknown>>;
  /** The names of its unknown fields, which have no effect. */
  readonly ignored: readonly string[];
}

/** The outputs of the two validators. An Arrow stream has no JSON. */
export type ValidatedInput = { out: { query: Validated; json: Validated | undefined } };

/** The first delimiter applies to the path. */
const delimiter = z.string("must not be repeated").optional();

/** Validates the query. @throws CatalogError InvalidInput with all problems and their paths. */
export function validateQuery(contract: AnyContract): MiddlewareHandler<AppEnv> {
  const checkQuery = checkFields(contract, "query");
  return zValidator("query", contract.query.extend({ delimiter }), undefined, {
    validationFunction: (schema, query) => validated(schema, query, checkQuery(query)),
  });
}

/** Validates the JSON body. `null` means `{}`, and a `bareField` is the whole. @throws CatalogError InvalidInput */
export function validateBody(contract: AnyContract): MiddlewareHandler<AppEnv> {
  const { bareField } = contract;
  const checkBody = checkFields(contract, "JSON body");
  const validateJson: MiddlewareHandler<AppEnv> = zValidator("json", contract.body, undefined, {
    validationFunction: (schema, json: unknown) => {
      const body = bareField === undefined ? (json ?? {}) : { [bareField]: json ?? {} };
      return validated(schema, body, checkBody(body));
    },
  });
  if (contract.content === "json") return validateJson;
  return async function validateUnlessArrow(c, next) {
    return isArrow(contract, c) ? next() : validateJson(c, next);
  };
}

/**
 * Combines the fields of path, query and body. If both the query and the body contain a field, the body has precedence.
 *
 * @throws CatalogError InvalidInput if the body names another object than the path.
 */
export function joinFields(
  c: AppContext,
  { pathId, ...target }: Target,
  query: Validated,
  body?: Validated,
): AnyRequest {
  const { id, index_name: indexName, ...fields } = body?.fields ?? {};
  if (pathId !== undefined && Array.isArray(id) && formatIdentifier(id, target.delimiter) !== pathId)
    throw new CatalogError("InvalidInput", "id: the body names another object than the path");
  if (indexName !== undefined && indexName !== target.indexName)
    throw new CatalogError("InvalidInput", "index_name: the body names another index than the path");
  const ignored = [...query.ignored, ...(body?.ignored ?? [])];
  if (ignored.length > 0) c.set("ignoredFields", [...new Set(ignored)]);
  return { ...query.fields, ...fields, ...target };
}

/**
 * Validates without promises: no contract has an asynchronous check, and zod compiles only synchronous validators.
 *
 * @throws CatalogError InvalidInput
 */
function validated(schema: z.ZodObject, value: unknown, ignored: readonly string[]): z.ZodSafeParseResult<unknown> {
  const result = schema.safeParse(value, parsing);
  if (!result.success) throw invalidInput(result.error.issues, describeIssue);
  return { success: true, data: { fields: result.data, ignored } };
}

/** Describes an issue with its path. Zod nests the issue of a map's key. */
function describeIssue(issue: z.core.$ZodIssue): string {
  const { message } = (issue.code === "invalid_key" ? issue.issues[0] : undefined) ?? issue;
  return [...(issue.path.length === 0 ? [] : [issue.path.join(".")]), message].join(": ");
}
