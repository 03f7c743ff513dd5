import {
  CatalogError,
  checkDelimiter,
  checkIdentifier,
  defaultDelimiter,
  type Identifier,
  parseIdentifier,
  remoteHeaders,
} from "@tiltyard/protocol";
import { createMiddleware } from "hono/factory";
import type { AppContext, AppEnv } from "../context.ts";

/**
 * Reads the object from the path.
 *
 * @param remoteDatabases Prepends the database of LanceDB's client to ids.
 * @throws CatalogError InvalidInput if the id or the delimiter is invalid.
 */
export function target({ remoteDatabases }: { readonly remoteDatabases: boolean }) {
  return createMiddleware<AppEnv>(async function target(c, next) {
    checkEncoding(c.req.path);
    const [given = defaultDelimiter, ...repeated] = c.req.queries("delimiter") ?? [];
    if (repeated.length > 0) throw new CatalogError("InvalidInput", "delimiter: must not be repeated");
    const delimiter = checkDelimiter(given);
    const pathId = c.req.param("id");
    const id = pathId === undefined ? [] : parseIdentifier(pathId, delimiter);
    const database = remoteDatabases ? databaseOf(c) : undefined;
    c.set("target", {
      id: database === undefined ? id : checkIdentifier([...database, ...id]),
      ...(database !== undefined && { database }),
      indexName: c.req.param("index_name") ?? "",
      delimiter,
      pathId,
    });
    await next();
  });
}

/** Returns the namespace of LanceDB's `db://name/prefix`; undefined for other clients. */
function databaseOf(c: AppContext): Identifier | undefined {
  const name = c.req.header(remoteHeaders.database);
  if (name === undefined) return undefined;
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
