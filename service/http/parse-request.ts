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
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { invalidInput } from "../domain/invalid-input.ts";

export const bodyBytesMax = 4 * 1024 * 1024;
/** How many queries of an operation are kept with what they mean, and how long such a query may be. */
const queriesKept = 100;
const keptQueryLengthMax = 200;

/** The request of any contract: the fields that all have, and the others unread. */
export interface ParsedRequest {
  readonly id: Identifier;
  readonly indexName: string;
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
  const text = await readText(request);
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
  const isThere = typeof body === "object" && body !== null && ("identity" in body || "context" in body);
  return isThere ? EnvelopeBody.parse(body) : {};
}

/**
 * Makes what validates requests against a contract, and puts the fields of query and body into
 * one object; where both have a field, the body's counts.
 *
 * It throws CatalogError InvalidInput that lists the problems with their paths.
 */
export function createRequestParser(contract: AnyContract): (request: HonoRequest, body: unknown) => ParsedRequest {
  const segments = contract.path.split("/");
  const idSegment = segments.indexOf("{id}");
  const indexSegment = segments.indexOf("{index_name}");
  const readQuery = createQueryReader(contract);
  const { bareField } = contract;

  return (request, body) => {
    const { url } = request;
    const mark = url.indexOf("?");
    const { delimiter, parsed: parsedQuery } = readQuery(request, mark === -1 ? "" : url.slice(mark));
    const path = mark === -1 ? url : url.slice(0, mark);
    const pathId = idSegment === -1 ? undefined : inPath(path, idSegment, "id");
    const indexName = indexSegment === -1 ? "" : inPath(path, indexSegment, "index_name");
    const id = pathId === undefined ? [] : parseIdentifier(pathId, delimiter);

    const parsedBody = contract.body.safeParse(bareField === undefined ? body : { [bareField]: body });
    if (!parsedQuery.success || !parsedBody.success)
      throw invalidInput(problemsOf([parsedQuery.error, parsedBody.error]));

    const { id: bodyId, index_name: bodyIndexName, ...fields } = parsedBody.data;
    if (pathId !== undefined && Array.isArray(bodyId) && formatIdentifier(bodyId, delimiter) !== pathId)
      throw new CatalogError("InvalidInput", "id: the body names another object than the path");
    if (bodyIndexName !== undefined && bodyIndexName !== indexName)
      throw new CatalogError("InvalidInput", "index_name: the body names another index than the path");
    const merged: Record<string, unknown> = { ...parsedQuery.data };
    for (const [name, value] of Object.entries(fields)) if (value !== undefined) merged[name] = value;
    return { ...merged, id, indexName, delimiter };
  };
}

/** Reads queries. Clients send few different ones, so what was read lately is kept. */
function createQueryReader(contract: AnyContract) {
  const kept = new LRUCache<string, { delimiter: string; parsed: ReturnType<typeof contract.query.safeParse> }>({
    max: queriesKept,
  });
  return (request: HonoRequest, text: string) => {
    const known = kept.get(text);
    if (known !== undefined) return known;
    const query = request.query();
    // A generated client may send a list for what is one value here.
    const repeated =
      contract.content === "arrow" && Object.entries(request.queries()).find(([, all]) => all.length > 1);
    if (repeated) throw new CatalogError("InvalidInput", `${repeated[0]}: takes one value`);
    const delimiter = checkDelimiter(query.delimiter ?? defaultDelimiter);
    const read = { delimiter, parsed: contract.query.safeParse(query) };
    if (text.length <= keptQueryLengthMax) kept.set(text, read);
    return read;
  };
}

function problemsOf(errors: readonly (z.ZodError | undefined)[]): readonly string[] {
  return errors
    .flatMap((error) => error?.issues ?? [])
    .map((issue) => (issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`));
}

/**
 * The id or another parameter in the path of a request. Lance's Rust client encodes paths as forms are encoded,
 * with a plus for a space; a plus itself comes as `%2B` from every client.
 *
 * @param url Without a query.
 * @param segment Which one of the path's it is; the path begins behind the scheme and the host.
 */
function inPath(url: string, segment: number, name: string): string {
  const text = url.split("/")[segment + 2] ?? "";
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new CatalogError("InvalidInput", `${name}: is not percent-encoded UTF-8`);
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a body as text.
 *
 * @throws CatalogError PayloadTooLarge, or InvalidInput for what is not UTF-8
 */
export async function readText(request: HonoRequest): Promise<string> {
  const bytes = await readBytes(request).catch((cause: unknown) => {
    // A client that goes away in the middle of its body is no failure of the service.
    if (cause instanceof CatalogError) throw cause;
    throw new CatalogError("InvalidInput", "the body broke off", { cause });
  });
  try {
    return utf8.decode(bytes);
  } catch {
    throw new CatalogError("InvalidInput", "the body is not UTF-8");
  }
}

/** Trusts the length that a request tells, which Node holds it to; a body that tells none is counted as it comes. */
async function readBytes(request: HonoRequest): Promise<ArrayBuffer | Uint8Array> {
  const refuse = (): never => {
    throw new CatalogError("PayloadTooLarge", `a request body may have ${bodyBytesMax} bytes, no more`);
  };
  const length = request.header("content-length");
  if (length !== undefined) return Number(length) > bodyBytesMax ? refuse() : request.arrayBuffer();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.raw.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bodyBytesMax) refuse();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
/** As it is, or with one of its characters escaped. */
const mayNamePrototype = /__proto__|\\u00[567]/;

function refusePrototype(key: string, value: unknown): unknown {
  if (key === "__proto__") throw new CatalogError("InvalidInput", "the body has a key __proto__");
  return value;
}
