import type { AnyContract } from "./contract.ts";
import { ownValue } from "./own-value.ts";

/** The parts of a contract that determine the form of a request. */
export interface RequestShape {
  readonly method: "GET" | "POST";
  /** The path with parameters in braces, such as `/v1/table/{id}/describe`. */
  readonly path: string;
  /** The fields that are sent as query parameters. */
  readonly query: readonly string[];
  /** The field that is the whole body, without an enclosing object. */
  readonly bareField: string | undefined;
}

export interface HttpRequest {
  readonly method: "GET" | "POST";
  /** The path with its query. */
  readonly path: string;
  /** The JSON body of a POST. */
  readonly json: string | undefined;
}

export function requestShape({ methods, path, query, body, bareField }: AnyContract): RequestShape {
  const method = methods.includes("POST") ? "POST" : "GET";
  return {
    method,
    path,
    query: Object.keys(query.shape).filter((name) => !Object.hasOwn(body.shape, name)),
    bareField,
  };
}

/** Returns a delimiter that no part of an identifier contains, usually `$`. */
export function delimiterFor(id: readonly string[]): string {
  let delimiter = "$";
  while (id.some((part) => part.includes(delimiter))) delimiter = delimiter === "$" ? "~" : `${delimiter}~`;
  return delimiter;
}

/**
 * Converts a request to HTTP. The identifier becomes part of the path, fields of the query become parameters, and all
 * others become JSON. Lists become repeated parameters. The default delimiter is in no part of the identifier, which
 * would otherwise be that of another object.
 *
 * @throws RangeError for a name that would change the path, and thus the operation.
 */
export function httpRequest(
  shape: RequestShape,
  request: Readonly<Record<string, unknown>> & { readonly id?: readonly string[]; readonly indexName?: string },
  options: { readonly delimiter?: string } = {},
): HttpRequest {
  const { id = [], indexName = "", ...fields } = request;
  const { delimiter = delimiterFor(id) } = options;
  const parameters = new URLSearchParams(delimiter === "$" ? {} : { delimiter });
  const body: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields))
    if (!shape.query.includes(name)) body[name] = value;
    else if (value !== undefined) for (const each of [value].flat()) parameters.append(name, String(each));
  const path = shape.path
    .replace("{id}", () => segment(id.length === 0 ? delimiter : id.join(delimiter)))
    .replace("{index_name}", () => segment(indexName));
  const content = shape.bareField === undefined ? body : ownValue(body, shape.bareField);
  return {
    method: shape.method,
    path: parameters.size === 0 ? path : `${path}?${parameters}`,
    json: shape.method === "POST" ? JSON.stringify(content) : undefined,
  };
}

/** Encodes a segment of a path. URLs resolve `.` and `..` like folders, even percent-encoded. */
function segment(text: string): string {
  if (text === "." || text === "..") throw new RangeError(`URLs cannot contain the name "${text}"`);
  return encodeURIComponent(text);
}
