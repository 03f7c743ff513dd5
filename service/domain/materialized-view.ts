import { createHash } from "node:crypto";
import {
  CatalogError,
  contracts,
  defaultDelimiter,
  type Identifier,
  parseIdentifier,
  type RequestOf,
  readSourceQuery,
} from "@tiltyard/protocol";
import { z } from "zod";
import type { TableRecord } from "../store/tables.ts";
import { type NewJob, prepareJob, requireFitting, requireNameable } from "./job.ts";
import { parametersOf, viewDefinitionPrefix as prefix } from "./parameters.ts";
import type { Caller } from "./transaction.ts";

// A view is a table whose properties with the prefix define it; `DescribeTable` answers them. Views that Geneva makes
// itself have none: Geneva keeps the definition in the metadata of their schema.

/** The most characters of a definition as JSON. A refresh repeats it and needs room for the notes of its attempts. */
const definitionLengthMax = 192 * 1024;

/** Of a function that a view was stored with, what is read of it again. */
const StoredUdtf = z.looseObject({ manifest: z.string().optional() });

type CreateRequest = RequestOf<typeof contracts.createMaterializedView>;
/** With any other parameters that a refresh takes. */
interface RefreshRequest {
  readonly id: Identifier;
  readonly delimiter: string;
  readonly output_limit?: number | undefined;
  readonly manifest?: string | undefined;
}

/**
 * The properties of the table that a view is.
 *
 * @throws CatalogError InvalidInput for a definition that contradicts itself, or is too large.
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
    throw new CatalogError("InvalidInput", `udtf_spec.kind: is ${udtf.kind}, and the view's kind is ${kind}`);
  if (udtf.partition_by !== undefined && udtf.partition_by_indexed_column !== undefined)
    throw new CatalogError("InvalidInput", "udtf_spec: has partition_by and partition_by_indexed_column: use one");
  // Geneva's client sends that of the text, the protocol says that of what the text stands for.
  const [ofText, ofContent] = [udtf.udtf, Buffer.from(udtf.udtf, "base64")].map(sha256);
  if (![ofText, ofContent].includes(udtf.udtf_sha.toLowerCase()))
    throw new CatalogError("InvalidInput", `udtf_spec.udtf_sha: the SHA-256 of what is in udtf is ${ofContent}`);
}

function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

const viewPrefix = "geneva::view::";
/** How Geneva names a source that it opens through a catalog. */
const throughCatalog = "namespace://";

/** The table that a view is computed from, as it is when the view is made. */
export interface ViewSource {
  readonly version: number;
  /** Only a view of a table whose rows keep their ids follows it from version to version. */
  readonly hasStableRowIds: boolean;
}

/** The metadata of a view's schema by which Geneva refreshes it, as Geneva writes it itself. */
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

/**
 * The job of a refresh, with all that the compute side needs in its properties: the view's definition and the
 * parameters of the request, or what the view was stored with.
 *
 * @throws CatalogError InvalidInput for a parameter that is not one of the view's kind, and as `prepareJob` and
 *   `requireNameable`.
 */
export function prepareRefresh(view: Pick<TableRecord, "properties">, request: RefreshRequest, caller: Caller): NewJob {
  requireNameable(request.id);
  const definition = Object.entries(view.properties).filter(([name]) => name.startsWith(prefix));
  const kind = view.properties[`${prefix}kind`];
  if (request.output_limit !== undefined && kind !== undefined && kind !== "chunker")
    throw new CatalogError("InvalidInput", `output_limit: is for views of the kind chunker, and this one is a ${kind}`);
  return prepareJob({
    contract: contracts.refreshMaterializedView,
    request,
    caller,
    objects: [request.id],
    properties: {
      ...Object.fromEntries(definition),
      ...parametersOf({ ...request, manifest: request.manifest ?? manifestOf(view) }),
    },
  });
}

/** The manifest that a view's function was stored with. @throws CatalogError InvalidInput */
function manifestOf({ properties }: Pick<TableRecord, "properties">): string | undefined {
  const name = `${prefix}udtf_spec`;
  const spec = properties[name];
  if (spec === undefined) return undefined;
  try {
    return StoredUdtf.parse(JSON.parse(spec)).manifest;
  } catch (cause) {
    // A client may give its table any properties.
    throw new CatalogError("InvalidInput", `properties.${name}: is not what CreateMaterializedView writes`, { cause });
  }
}
