import {
  type AnyContract,
  CatalogError,
  checkDelimiter,
  checkIdentifier,
  defaultDelimiter,
  type Identifier,
  type PathFields,
  parseIdentifier,
  remoteHeaders,
} from "@tiltyard/protocol";
import { type Exchange, headerOf } from "./exchange.ts";

/** What the path of a request tells, before its query and its body are validated. */
export interface RequestPath extends PathFields {
  /** The id as it stands in the path; undefined for an operation that has none. */
  readonly pathId: string | undefined;
}

/**
 * @param remoteDatabases Whether ids begin with the database that LanceDB's client names.
 * @returns Reads paths; it throws CatalogError InvalidInput for an id or a delimiter that is not valid.
 */
export function createPathReader({ path }: AnyContract, remoteDatabases: boolean): (exchange: Exchange) => RequestPath {
  const segments = path.split("/");
  const idSegment = segments.indexOf("{id}");
  const indexSegment = segments.indexOf("{index_name}");
  return (exchange) => {
    const { path, query } = exchange;
    const delimiter = checkDelimiter(query.get("delimiter")?.[0] ?? defaultDelimiter);
    const pathId = idSegment === -1 ? undefined : inPath(path, idSegment, "id");
    const indexName = indexSegment === -1 ? "" : inPath(path, indexSegment, "index_name");
    const id = pathId === undefined ? [] : parseIdentifier(pathId, delimiter);
    const database = remoteDatabases ? databaseOf(exchange) : undefined;
    if (database === undefined) return { id, indexName, delimiter, pathId };
    return { id: checkIdentifier([...database, ...id]), database, indexName, delimiter, pathId };
  };
}

/** The namespace of the database in LanceDB's `db://name/prefix`; undefined for other clients. */
function databaseOf(exchange: Exchange): Identifier | undefined {
  const name = headerOf(exchange, remoteHeaders.database);
  if (name === undefined) return undefined;
  const prefix = headerOf(exchange, remoteHeaders.databasePrefix);
  return [name, ...(prefix?.split("/").filter((part) => part !== "") ?? [])];
}

/**
 * The id or another parameter in the path of a request. Lance's Rust client encodes paths as forms are encoded,
 * with a plus for a space; a plus itself comes as `%2B` from every client.
 *
 * @param segment Which one of the path's it is.
 */
function inPath(path: string, segment: number, name: string): string {
  const text = segmentOf(path, segment);
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new CatalogError("InvalidInput", `${name}: is not percent-encoded UTF-8`);
  }
}

function segmentOf(path: string, segment: number): string {
  let begin = 0;
  for (let passed = 0; passed < segment; passed += 1) begin = path.indexOf("/", begin) + 1;
  const end = path.indexOf("/", begin);
  return end === -1 ? path.slice(begin) : path.slice(begin, end);
}
