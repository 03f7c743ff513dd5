import {
  CatalogError,
  checkDelimiter,
  checkIdentifier,
  defaultDelimiter,
  type Identifier,
  parseIdentifier,
  remoteHeaders,
} from "@tiltyard/protocol";
import type { AppContext, Target } from "./context.ts";

/** Matches the user agent of LanceDB's remote client in any language. */
const isRemoteClient = /^LanceDB-\w+-Client\//;

/**
 * Reads the object from the path. A repeated delimiter is rejected with the rest of the query.
 *
 * @param remoteDatabases Prepends the database of LanceDB's client to ids.
 * @throws CatalogError InvalidInput if the id or the delimiter is invalid; Unsupported for databases while they are off.
 */
export function readTarget(c: AppContext, remoteDatabases: boolean): Target {
  checkEncoding(c.req.path);
  const delimiter = checkDelimiter(c.req.query("delimiter") ?? defaultDelimiter);
  const pathId = c.req.param("id");
  const id = pathId === undefined ? [] : parseIdentifier(pathId, delimiter);
  const database = databaseOf(c, remoteDatabases);
  return {
    id: database === undefined ? id : checkIdentifier([...database, ...id]),
    ...(database !== undefined && { database }),
    indexName: c.req.param("index_name") ?? "",
    delimiter,
    pathId,
  };
}

/**
 * Returns the namespace of LanceDB's `db://name/prefix`; undefined for other clients and while databases are off.
 *
 * @throws CatalogError Unsupported for a client that creates databases while they are off, because all would share the
 * tables of the root. Its own requests name no database, unlike those of `db://`.
 */
function databaseOf(c: AppContext, remoteDatabases: boolean): Identifier | undefined {
  const name = c.req.header(remoteHeaders.database);
  const problem = "databases are off. Set TILTYARD_REMOTE_DATABASES=on, or connect to db://name";
  if (!remoteDatabases && name === undefined && isRemoteClient.test(c.req.header("user-agent") ?? ""))
    throw new CatalogError("Unsupported", problem);
  if (!remoteDatabases || name === undefined) return undefined;
  const prefix = c.req.header(remoteHeaders.databasePrefix) ?? "";
  return [name, ...prefix.split("/").filter((part) => part !== "")];
}

/** Rejects invalid escape sequences. Hono would leave them unchanged, and they would become part of a name. */
function checkEncoding(path: string): void {
  try {
    decodeURIComponent(path);
  } catch {
    throw new CatalogError("InvalidInput", "id: is not percent-encoded UTF-8");
  }
}
