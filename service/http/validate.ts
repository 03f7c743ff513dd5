import { zValidator } from "@hono/zod-validator";
import { type AnyContract, CatalogError, formatIdentifier } from "@tiltyard/protocol";
import type { Context, HonoRequest, MiddlewareHandler } from "hono";
import { LRUCache } from "lru-cache";
import type { z } from "zod";
import { invalidInput } from "../domain/invalid-input.ts";
import { incomingOf } from "./incoming.ts";
import type { OperationEnv, Step } from "./operation.ts";
import type { RequestPath } from "./request-path.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What the two steps find. */
interface Validated {
  readonly query: z.ZodSafeParseResult<Fields>;
  readonly json: Fields;
}

/** A request behind both steps. */
export interface ValidatedInput {
  readonly out: Validated;
}

/** How many queries of an operation are cached as they were parsed, and how long such a query may be. */
const queriesKept = 100;
const keptQueryLengthMax = 200;

/**
 * Validates the query. Its problems are reported together with those of the body. Clients send few different queries, so
 * recent results are cached.
 */
export function validateQuery({
  content,
  query,
}: AnyContract): MiddlewareHandler<OperationEnv, string, ValidatedInput> {
  const kept = new LRUCache<string, Validated["query"]>({ max: queriesKept });
  const validate: Step = zValidator("query", query, undefined, {
    validationFunction: (schema, values) => ({
      success: true,
      data: schema.safeParse(
        Object.fromEntries(Object.entries(values).map(([name, value]) => [name, one(name, value)])),
      ),
    }),
  });
  return (context, next) => {
    const text = textOf(context.req);
    const known = kept.get(text);
    if (known === undefined)
      return validate(context, () => {
        if (text.length <= keptQueryLengthMax) kept.set(text, context.req.valid("query"));
        return next();
      });
    context.req.addValidatedData("query", known);
    return next();
  };

  /** A generated client may send a list for what is one value here. */
  function one(name: string, value: string | string[]): string | undefined {
    if (typeof value === "string") return value;
    if (content === "arrow") throw new CatalogError("InvalidInput", `${name}: takes one value`);
    return value[0];
  }
}

/** The query as it stands in the URL. */
function textOf({ url }: HonoRequest): string {
  const mark = url.indexOf("?");
  return mark === -1 ? "" : url.slice(mark);
}

/**
 * Validates the body. The meaning of an empty one, as most are, is found once.
 *
 * @throws CatalogError InvalidInput that lists the problems of query and body with their paths.
 */
export function validateBody({
  body: schema,
  bareField,
}: AnyContract): MiddlewareHandler<OperationEnv, string, ValidatedInput> {
  const ofNothing = schema.safeParse({});
  const validate: Step = zValidator(
    "json",
    schema,
    (result, context: Context<OperationEnv, string, ValidatedInput>) => {
      const query = context.req.valid("query");
      if (!query.success || !result.success)
        throw invalidInput(problemsOf([query.error, result.success ? undefined : result.error]));
    },
    { validationFunction: (schema, value) => schema.safeParse(value) },
  );
  return (context, next) => {
    const { req } = context;
    const given = context.get("body");
    const body = bareField === undefined ? given : { [bareField]: given };
    if (ofNothing.success && saysNothing(body) && req.valid("query").success) {
      req.addValidatedData("json", ofNothing.data);
      return next();
    }
    takeAsJson(context, body);
    return validate(context, next);
  };
}

function saysNothing(body: unknown): boolean {
  return typeof body === "object" && body !== null && !Array.isArray(body) && Object.keys(body).length === 0;
}

const jsonType = "application/json";

/** Makes a parsed body the one that Hono's validator takes, whatever content type came with it: `curl -d` sends a form's. */
function takeAsJson(context: Context, body: unknown): void {
  const { req } = context;
  // Hono reads Node's own headers until a `Headers` object is made, which costs more than all else here.
  incomingOf(context).headers["content-type"] = jsonType;
  if (req.header("content-type") !== jsonType) req.raw.headers.set("content-type", jsonType);
  Object.assign(req, { json: async () => body });
}

/**
 * The request of a contract: the fields of query and body in one object; where both have a field, the body's counts.
 *
 * @throws CatalogError InvalidInput for a body that names another object than the path.
 */
export function requestIn(
  request: HonoRequest<string, Validated>,
  { id, database, indexName, delimiter, pathId }: RequestPath,
): Fields {
  const body = request.valid("json");
  const { id: bodyId, index_name: bodyIndexName } = body;
  if (pathId !== undefined && Array.isArray(bodyId) && formatIdentifier(bodyId, delimiter) !== pathId)
    throw new CatalogError("InvalidInput", "id: the body names another object than the path");
  if (bodyIndexName !== undefined && bodyIndexName !== indexName)
    throw new CatalogError("InvalidInput", "index_name: the body names another index than the path");
  const fields: Record<string, unknown> = { ...request.valid("query").data };
  for (const [name, value] of Object.entries(body))
    if (value !== undefined && name !== "index_name") fields[name] = value;
  return Object.assign(fields, { id, indexName, delimiter }, database && { database });
}

function problemsOf(errors: readonly (Pick<z.core.$ZodError, "issues"> | undefined)[]): readonly string[] {
  return errors
    .flatMap((error) => error?.issues ?? [])
    .map((issue) => (issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`));
}
