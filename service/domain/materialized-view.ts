import { createHash } from "node:crypto";
import {
  CatalogError,
  contracts,
  defaultDelimiter,
  type Identifier,
  parseIdentifier,
  viewDefinitionPrefix as prefix,
  type RequestOf,
  readSourceQuery,
} from "@tiltyard/protocol";
import { z } from "zod";
import type { TableRecord } from "../store/tables.ts";
import { type NewJob, prepareJob, requireFitting, requireNameable } from "./job.ts";
import { parametersOf } from "./parameters.ts";
import type { Caller } from "./transaction.ts";

// A view is a table whose properties with the prefix define it. `DescribeTable` returns them. Views that Geneva itself
// creates have none: Geneva stores their definition in the metadata of their schema.

/**
 * The maximum length of a definition as JSON. A refresh repeats the definition and needs space for the notes of its
 * attempts.
 */
const definitionLengthMax = 192 * 1024;

/** The fields that the catalog reads of a stored function. */
const StoredUdtf = z.looseObject({ manifest: z.string().optional() });

type CreateRequest = RequestOf<typeof contracts.createMaterializedView>;
/** The parameters that all refreshes share. Additional ones are allowed. */
interface RefreshRequest {
  readonly id: Identifier;
  readonly delimiter: string;
  readonly output_limit?: number | undefined;
  readonly manifest?: string | undefined;
}

/**
 * Returns the table properties of a view.
 *
 * @throws CatalogError InvalidInput if the definition contradicts itself or is too large.
 */
export function definitionOf(request: CreateRequest): Record<string, string> {
  const { kind, source_query, output_schema, udtf_spec: udtf, auto_refresh = false } = request;
  checkUdtf(kind, udtf);
  const definition = {
    [`${prefix}kind`]: kind,
    [`${prefix}source_query`]: source_query,
    [`${prefix}output_schema`]: output_schema,
    [`${prefix}auto_refresh`]: String(auto_refresh),
    ...(udtf !== undefined && { [`${prefix}udtf_spec`]: JSON.stringify(udtf) }),
  };
  requireFitting("the view's definition", definition, definitionLengthMax);
  return definition;
}

function checkUdtf(kind: CreateRequest["kind"], udtf: CreateRequest["udtf_spec"]): void {
  if (udtf === undefined) {
    if (kind !== "query") throw new CatalogError("InvalidInput", `udtf_spec: a view of the kind ${kind} needs it`);
    return;
  }
  if (udtf.kind !== kind)
    throw new CatalogError("InvalidInput", `udtf_spec.kind: is ${udtf.kind}, but the kind of the view is ${kind}`);
  if (udtf.partition_by !== undefined && udtf.partition_by_indexed_column !== undefined)
    throw new CatalogError("InvalidInput", "udtf_spec: has partition_by and partition_by_indexed_column: use one");
  // Geneva's client sends the hash of the encoded text, while the protocol specifies that of the decoded content.
  const [ofText, ofContent] = [udtf.udtf, Buffer.from(udtf.udtf, "base64")].map(sha256);
  if (![ofText, ofContent].includes(udtf.udtf_sha.toLowerCase()))
    throw new CatalogError("InvalidInput", `udtf_spec.udtf_sha: the SHA-256 of udtf is ${ofContent}`);
}

function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

const viewPrefix = "geneva::view::";
/** The prefix of a source that Geneva opens through a catalog. */
const throughCatalog = "namespace://";

/** The source table of a view when the view is created. */
export interface ViewSource {
  readonly version: number;
  /** Reports whether rows keep their ids, which a view needs to follow its source from version to version. */
  readonly hasStableRowIds: boolean;
}

/** Returns the schema metadata that Geneva needs to refresh a view, in Geneva's own format. */
export function viewMetadata(request: CreateRequest, source: ViewSource): Record<string, string> {
  const { kind, source_query, udtf_spec: udtf } = request;
  const query = readSourceQuery(source_query);
  if (query === undefined) return {};
  const table = parseIdentifier(query.source_table);
  const [name = ""] = table.slice(-1);
  const queryVersion = source.hasStableRowIds ? "2" : "1";
  return {
    [`${viewPrefix}query`]: JSON.stringify({ ...query, source_table: name, source_db_uri: throughCatalog }),
    [`${viewPrefix}base_table`]: name,
    [`${viewPrefix}base_table_db_uri`]: throughCatalog,
    ...(table.length > 1 && { [`${viewPrefix}namespace_path`]: table.slice(0, -1).join(defaultDelimiter) }),
    [`${viewPrefix}base_table_version`]: String(source.version),
    [`${viewPrefix}version`]: kind === "query" ? queryVersion : kind,
    ...(udtf !== undefined && { [`${viewPrefix}${kind}`]: Buffer.from(udtf.udtf, "base64").toString("utf8") }),
    ...(udtf?.manifest !== undefined && { [`${viewPrefix}manifest`]: udtf.manifest }),
    ...(udtf?.manifest_checksum !== undefined && { [`${viewPrefix}manifest_checksum`]: udtf.manifest_checksum }),
  };
}

/** Reports whether a table is a view with its definition in the properties. */
export function hasDefinition({ properties }: Pick<TableRecord, "properties">): boolean {
  return Object.keys(properties).some((name) => name.startsWith(prefix));
}

/**
 * Returns the definition of a view that Geneva itself created, as far as its refresh needs it, from the metadata of its
 * schema; empty if the table is no view of a source in this catalog.
 */
export function definitionInSchema(metadata: Readonly<Record<string, string>>): Record<string, string> {
  const [name, path] = [metadata[`${viewPrefix}base_table`], metadata[`${viewPrefix}namespace_path`]];
  if (name === undefined) return {};
  const source_table = path === undefined ? name : `${path}${defaultDelimiter}${name}`;
  return { [`${prefix}source_query`]: JSON.stringify({ source_table }) };
}

/**
 * Prepares the job of a refresh. Its parameters contain everything that the compute side needs: the definition of the
 * view and the parameters, either of the request or as stored with the view.
 *
 * @throws CatalogError InvalidInput for a parameter that the kind of the view does not have; also like `prepareJob` and
 * `requireNameable`.
 */
export function prepareRefresh(view: Pick<TableRecord, "properties">, request: RefreshRequest, caller: Caller): NewJob {
  requireNameable(request.id);
  const definition = Object.entries(view.properties).filter(([name]) => name.startsWith(prefix));
  const kind = view.properties[`${prefix}kind`];
  if (request.output_limit !== undefined && kind !== undefined && kind !== "chunker")
    throw new CatalogError(
      "InvalidInput",
      `output_limit: is only for views of the kind chunker; this one is a ${kind}`,
    );
  return prepareJob({
    contract: contracts.refreshMaterializedView,
    request,
    caller,
    table: request.id,
    parameters: {
      ...Object.fromEntries(definition),
      ...parametersOf({ ...request, manifest: request.manifest ?? manifestOf(view) }),
    },
  });
}

/** Returns the stored manifest of a view's function. @throws CatalogError InvalidInput */
function manifestOf({ properties }: Pick<TableRecord, "properties">): string | undefined {
  const name = `${prefix}udtf_spec`;
  const spec = properties[name];
  if (spec === undefined) return undefined;
  try {
    return StoredUdtf.parse(JSON.parse(spec)).manifest;
  } catch (cause) {
    // A client can set any properties on its table.
    throw new CatalogError("InvalidInput", `properties.${name}: must have the format of CreateMaterializedView`, {
      cause,
    });
  }
}
