import {
  type AnyContract,
  CatalogError,
  Context,
  checkDelimiter,
  defaultDelimiter,
  formatIdentifier,
  Identity,
  type PathFields,
  parseIdentifier,
} from "@tiltyard/protocol";
import type { HonoRequest } from "hono";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { invalidInput } from "../domain/invalid-input.ts";

/** How many queries of an operation are kept with what they mean, and how long such a query may be. */
const queriesKept = 100;
const keptQueryLengthMax = 200;

/** The request of any contract: the fields that all have, and the others unread. */
export interface ParsedRequest extends PathFields {
  readonly [field: string]: unknown;
}

const EnvelopeBody = z.object({ identity: Identity.nullish(), context: Context.nullish() }).catch({});

/** What is read of a body before it is validated: who asks, and what it hands to the service. */
export type Envelope = z.infer<typeof EnvelopeBody>;

export function envelopeOf(body: unknown): Envelope {
  const isThere = typeof body === "object" && body !== null && ("identity" in body || "context" in body);
  return isThere ? EnvelopeBody.parse(body) : {};
}

/** What a request's path and query tell, before its body is read. */
export interface ParsedPath extends PathFields {
  /** The id as it stands in the path; undefined for an operation that has none. */
  readonly pathId: string | undefined;
  readonly query: z.ZodSafeParseResult<Readonly<Record<string, unknown>>>;
}

/** Validates the requests of one contract, in two steps: rights are looked at in between. */
export interface RequestParser {
  /** @throws CatalogError InvalidInput for an id or a delimiter that is not valid. */
  path(request: HonoRequest): ParsedPath;
  /**
   * Puts the fields of query and body into one object; where both have a field, the body's counts.
   *
   * @throws CatalogError InvalidInput that lists the problems of both with their paths.
   */
  body(path: ParsedPath, body: unknown): ParsedRequest;
}

export function createRequestParser(contract: AnyContract): RequestParser {
  const segments = contract.path.split("/");
  const idSegment = segments.indexOf("{id}");
  const indexSegment = segments.indexOf("{index_name}");
  const readQuery = createQueryReader(contract);
  const { bareField } = contract;

  return {
    path: (request) => {
      const { url } = request;
      const mark = url.indexOf("?");
      const { delimiter, parsed: query } = readQuery(request, mark === -1 ? "" : url.slice(mark));
      const path = mark === -1 ? url : url.slice(0, mark);
      const pathId = idSegment === -1 ? undefined : inPath(path, idSegment, "id");
      const indexName = indexSegment === -1 ? "" : inPath(path, indexSegment, "index_name");
      return {
        id: pathId === undefined ? [] : parseIdentifier(pathId, delimiter),
        indexName,
        delimiter,
        pathId,
        query,
      };
    },
    body: ({ id, indexName, delimiter, pathId, query }, body) => {
      const parsed = contract.body.safeParse(bareField === undefined ? body : { [bareField]: body });
      if (!query.success || !parsed.success) throw invalidInput(problemsOf([query.error, parsed.error]));

      const { id: bodyId, index_name: bodyIndexName } = parsed.data;
      if (pathId !== undefined && Array.isArray(bodyId) && formatIdentifier(bodyId, delimiter) !== pathId)
        throw new CatalogError("InvalidInput", "id: the body names another object than the path");
      if (bodyIndexName !== undefined && bodyIndexName !== indexName)
        throw new CatalogError("InvalidInput", "index_name: the body names another index than the path");
      const request: Record<string, unknown> = { ...query.data };
      for (const [name, value] of Object.entries(parsed.data))
        if (value !== undefined && name !== "index_name") request[name] = value;
      return Object.assign(request, { id, indexName, delimiter });
    },
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
