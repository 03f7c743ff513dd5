import {
  type AnyContract,
  CatalogError,
  Context,
  checkDelimiter,
  defaultDelimiter,
  formatIdentifier,
  type Identifier,
  Identity,
  parseIdentifier,
} from "@tiltyard/protocol";
import type { HonoRequest } from "hono";
import { z } from "zod";

/** The request of any contract: the fields that all have, and the others unread. */
export interface ParsedRequest {
  readonly id: Identifier;
  readonly delimiter: string;
  readonly [field: string]: unknown;
}

/**
 * Reads a body as JSON. An absent body, `null` and `{}` are the same empty request; only
 * UTF-8 is read, and a key that JavaScript would take for the prototype is refused.
 *
 * @throws CatalogError InvalidInput
 */
export async function readJson(request: HonoRequest): Promise<unknown> {
  const text = decodeUtf8(await request.arrayBuffer());
  if (text.trim() === "") return {};
  try {
    const value: unknown = mayNamePrototype.test(text) ? JSON.parse(text, refusePrototype) : JSON.parse(text);
    return value ?? {};
  } catch (error) {
    if (error instanceof CatalogError) throw error;
    throw new CatalogError("InvalidInput", `the body is not JSON: ${error instanceof Error ? error.message : ""}`);
  }
}

const EnvelopeBody = z.object({ identity: Identity.nullish(), context: Context.nullish() }).catch({});

/** What is read of a body before it is validated: who asks, and what it hands to the service. */
export type Envelope = z.infer<typeof EnvelopeBody>;

export function envelopeOf(body: unknown): Envelope {
  return EnvelopeBody.parse(body);
}

/**
 * Validates a request against its contract, and puts the fields of query and body into one
 * object; where both have a field, the body's counts.
 *
 * @throws CatalogError InvalidInput that lists every problem with its path.
 */
export function parseRequest(contract: AnyContract, request: HonoRequest, body: unknown): ParsedRequest {
  const query = request.query();
  const delimiter = checkDelimiter(query.delimiter ?? defaultDelimiter);
  const pathId = contract.path.includes("{id}") ? idInPath(contract, request) : undefined;
  const id = pathId === undefined ? [] : parseIdentifier(pathId, delimiter);

  const parsedQuery = contract.query.safeParse(query);
  const parsedBody = contract.body.safeParse(body);
  if (!parsedQuery.success || !parsedBody.success)
    throw new CatalogError("InvalidInput", problemsOf([parsedQuery.error, parsedBody.error]));

  const { id: bodyId, ...fields } = parsedBody.data;
  if (pathId !== undefined && Array.isArray(bodyId) && formatIdentifier(bodyId, delimiter) !== pathId)
    throw new CatalogError("InvalidInput", "id: the body names another object than the path");
  const merged: Record<string, unknown> = { ...parsedQuery.data };
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) merged[name] = value;
  return { ...merged, id, delimiter };
}

function problemsOf(errors: readonly (z.ZodError | undefined)[]): string {
  return errors
    .flatMap((error) => error?.issues ?? [])
    .map((issue) => (issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`))
    .join("; ");
}

/**
 * The id in the path of a request. Lance's Rust client encodes paths as forms are encoded,
 * with a plus for a space; a plus itself comes as `%2B` from every client.
 */
function idInPath(contract: AnyContract, request: HonoRequest): string {
  const [, , , ...path] = (request.url.split("?", 1)[0] ?? "").split("/");
  const segment = path[contract.path.split("/").indexOf("{id}") - 1] ?? "";
  try {
    return decodeURIComponent(segment.replaceAll("+", " "));
  } catch {
    throw new CatalogError("InvalidInput", "id: is not percent-encoded UTF-8");
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function decodeUtf8(bytes: ArrayBuffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new CatalogError("InvalidInput", "the body is not UTF-8");
  }
}

/** As it is, or with one of its characters escaped. */
const mayNamePrototype = /__proto__|\\u00[567]/;

function refusePrototype(key: string, value: unknown): unknown {
  if (key === "__proto__") throw new CatalogError("InvalidInput", "the body has a key __proto__");
  return value;
}
