import { zValidator } from "@hono/zod-validator";
import { type AnyContract, CatalogError, formatIdentifier, parsing } from "@tiltyard/protocol";
import type { MiddlewareHandler } from "hono";
import { createMiddleware } from "hono/factory";
import type { z } from "zod";
import { invalidInput } from "../../domain/invalid-input.ts";
import type { AppEnv } from "../context.ts";
import { isArrow, jsonBody } from "./json-body.ts";
import { knownFields } from "./known-fields.ts";

type Fields = Readonly<Record<string, unknown>>;
/** The outputs of the two validators. An Arrow stream has no JSON. */
type Validated = { out: { query: Fields; json: Fields | undefined } };

/**
 * Validates the query and the JSON body against the contract and combines their fields with those of the path. If both
 * the query and the body contain a field, the body has precedence.
 *
 * @throws CatalogError InvalidInput with all problems and their paths.
 */
export function validate(contract: AnyContract): readonly MiddlewareHandler<AppEnv>[] {
  return [jsonBody(contract), knownFields(contract), validateQuery(contract), validateBody(contract), joinFields()];
}

/** Validates without promises: no contract has an asynchronous check. Zod compiles only synchronous validators. */
const synchronous = { validationFunction: (schema: z.ZodType, value: unknown) => schema.safeParse(value, parsing) };

function validateQuery({ query }: AnyContract): MiddlewareHandler<AppEnv> {
  return zValidator("query", query, throwProblems, synchronous);
}

function validateBody(contract: AnyContract): MiddlewareHandler<AppEnv> {
  const json = zValidator("json", contract.body, throwProblems, synchronous) as MiddlewareHandler<AppEnv>;
  if (contract.content === "json") return json;
  return async function validateUnlessArrow(c, next) {
    return isArrow(contract, c) ? next() : json(c, next);
  };
}

function throwProblems(result: { readonly success: boolean; readonly error?: z.core.$ZodError }): void {
  if (result.success || result.error === undefined) return;
  throw invalidInput(
    result.error.issues.map(
      (issue) => `${issue.path.length === 0 ? "" : `${issue.path.join(".")}: `}${problemOf(issue)}`,
    ),
  );
}

function joinFields() {
  return createMiddleware<AppEnv, string, Validated>(async function joinFields(c, next) {
    const body = c.req.valid("json") ?? {};
    const { pathId, ...target } = c.get("target");
    const { id, index_name: indexName, ...fields } = body;
    if (pathId !== undefined && Array.isArray(id) && formatIdentifier(id, target.delimiter) !== pathId)
      throw new CatalogError("InvalidInput", "id: the body names another object than the path");
    if (indexName !== undefined && indexName !== target.indexName)
      throw new CatalogError("InvalidInput", "index_name: the body names another index than the path");
    const given = Object.entries(fields).filter(([, value]) => value !== undefined);
    c.set("request", { ...c.req.valid("query"), ...Object.fromEntries(given), ...target });
    await next();
  });
}

/** Returns the message of an issue. Zod nests the issue of a map's key. */
function problemOf(issue: z.core.$ZodIssue): string {
  return issue.code === "invalid_key" ? (issue.issues[0]?.message ?? issue.message) : issue.message;
}
