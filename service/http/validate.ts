import { type AnyContract, CatalogError, formatIdentifier } from "@tiltyard/protocol";
import type { z } from "zod";
import { invalidInput } from "../domain/invalid-input.ts";
import type { Query } from "./query.ts";
import type { RequestPath } from "./request-path.ts";

type Fields = Readonly<Record<string, unknown>>;
type Parsed = z.ZodSafeParseResult<Fields>;

/**
 * Makes the request of a contract from a path, a query and a parsed body: one object with the fields of query and body.
 * Where both have a field, the body's counts. Clients send few different queries, which are cached as they were validated, and
 * many empty bodies.
 *
 * @throws CatalogError InvalidInput that lists the problems of query and body with their paths, or for a body that names
 *   another object than the path.
 */
type RequestReader = (query: Query, path: RequestPath, body: unknown) => Fields;

export function createRequestReader({ content, query: querySchema, body, bareField }: AnyContract): RequestReader {
  const kept = new WeakMap<Query, Parsed>();
  const ofNothing: Parsed = body.safeParse({});

  function parseQuery(query: Query): Parsed {
    const known = kept.get(query);
    if (known !== undefined) return known;
    const values = [...query].map(([name, values]) => [name, one(name, values)]);
    const parsed: Parsed = querySchema.safeParse(Object.fromEntries(values));
    kept.set(query, parsed);
    return parsed;
  }

  /** A generated client may send a list for what is one value here. */
  function one(name: string, [first, ...others]: readonly string[]): string | undefined {
    if (others.length > 0 && content === "arrow") throw new CatalogError("InvalidInput", `${name}: takes one value`);
    return first;
  }

  function parseBody(given: unknown): Parsed {
    const whole = bareField === undefined ? given : { [bareField]: given };
    return ofNothing.success && saysNothing(whole) ? ofNothing : body.safeParse(whole);
  }

  return (query, path, given) => {
    const inQuery = parseQuery(query);
    const inBody = parseBody(given);
    if (!inQuery.success || !inBody.success) throw invalidInput(problemsOf([inQuery.error, inBody.error]));
    return join(inQuery.data, inBody.data, path);
  };
}

function saysNothing(body: unknown): boolean {
  return typeof body === "object" && body !== null && !Array.isArray(body) && Object.keys(body).length === 0;
}

function join(query: Fields, body: Fields, { id, database, indexName, delimiter, pathId }: RequestPath): Fields {
  const { id: bodyId, index_name: bodyIndexName } = body;
  if (pathId !== undefined && Array.isArray(bodyId) && formatIdentifier(bodyId, delimiter) !== pathId)
    throw new CatalogError("InvalidInput", "id: the body names another object than the path");
  if (bodyIndexName !== undefined && bodyIndexName !== indexName)
    throw new CatalogError("InvalidInput", "index_name: the body names another index than the path");
  const fields: Record<string, unknown> = { ...query };
  for (const [name, value] of Object.entries(body))
    if (value !== undefined && name !== "index_name") fields[name] = value;
  return Object.assign(fields, { id, indexName, delimiter }, database && { database });
}

function problemsOf(errors: readonly (Pick<z.core.$ZodError, "issues"> | undefined)[]): readonly string[] {
  return errors
    .flatMap((error) => error?.issues ?? [])
    .map((issue) => (issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`));
}
