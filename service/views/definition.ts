import { hash } from "node:crypto";
import {
  CatalogError,
  type contracts,
  defaultDelimiter,
  formatIdentifier,
  jobPrefix,
  parseIdentifier,
  viewDefinitionPrefix as prefix,
  type RequestOf,
  readSourceQuery,
  sourceOfView,
} from "@tiltyard/protocol";
import { authorize } from "../auth/authorize.ts";
import { jsonOf } from "../domain/request-fields.ts";
import type { Caller } from "../domain/transaction.ts";
import { requireFitting } from "../jobs/job.ts";
import type { Manifest } from "../lance/manifest.ts";
import type { Session } from "../store/store.ts";
import { findView, putView, type ViewRecord } from "../store/views.ts";

// A definition has two ways into the catalog: CreateMaterializedView, and the metadata of a schema, by which Geneva
// itself creates views. Both lead to `define`, which requires the definer to be a reader of the source.

export type ViewDefinition = Omit<ViewRecord, "tableId" | "definer">;

/** The maximum length of a definition as JSON. A refresh repeats it and adds notes. */
const definitionLengthMax = 192 * 1024;

type CreateRequest = RequestOf<typeof contracts.createMaterializedView>;

/** Returns a request whose query names the source in the catalog, as jobs open it, and not in the client's database. */
export function withSourceInCatalog(request: CreateRequest): CreateRequest {
  const [query, source] = [readSourceQuery(request.source_query), sourceOfView(request)];
  if (request.database === undefined || source === undefined) return request;
  const source_query = jsonOf({ ...query, source_table: formatIdentifier(source) }, "source_query");
  return { ...request, source_query, database: undefined };
}

/** Returns the definition of a view for Geneva's metadata. @throws CatalogError InvalidInput for contradictions. */
export function definitionOf(request: CreateRequest, metadata: Readonly<Record<string, string>>): ViewDefinition {
  return { source: sourceOfView(request), definition: parametersOf(request), schemaDigest: digestOf(metadata) };
}

/** Returns the definition as parameters of a refresh. @throws like `definitionOf` */
export function parametersOf(request: CreateRequest): Record<string, string> {
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
  const [ofText, ofContent] = [udtf.udtf, Buffer.from(udtf.udtf, "base64")].map((content) => hash("sha256", content));
  if (![ofText, ofContent].includes(udtf.udtf_sha.toLowerCase()))
    throw new CatalogError("InvalidInput", `udtf_spec.udtf_sha: the SHA-256 of udtf is ${ofContent}`);
}

const viewPrefix = "geneva::view::";
/** The source of a view, without which a schema defines none. */
const baseTable = `${viewPrefix}base_table`;
/** The entries of the metadata that select what Geneva executes. A refresh changes only others. */
const defining = ["query", "base_table", "base_table_db_uri", "namespace_path", "udtf", "chunker", "manifest"] as const;
/** The prefix of a source that Geneva opens through a catalog. */
const throughCatalog = "namespace://";

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
    [`${viewPrefix}query`]: jsonOf({ ...query, source_table: name, source_db_uri: throughCatalog }, "source_query"),
    [baseTable]: name,
    [`${viewPrefix}base_table_db_uri`]: throughCatalog,
    ...(table.length > 1 && { [`${viewPrefix}namespace_path`]: table.slice(0, -1).join(defaultDelimiter) }),
    [`${viewPrefix}base_table_version`]: String(source.version),
    [`${viewPrefix}version`]: kind === "query" ? queryVersion : kind,
    ...(udtf !== undefined && { [`${viewPrefix}${kind}`]: Buffer.from(udtf.udtf, "base64").toString("utf8") }),
    ...(udtf?.manifest !== undefined && { [`${viewPrefix}manifest`]: udtf.manifest }),
    ...(udtf?.manifest_checksum !== undefined && { [`${viewPrefix}manifest_checksum`]: udtf.manifest_checksum }),
  };
}

/** Returns the digest of the definition in the metadata of a schema; undefined without one. */
function digestOf(metadata: Readonly<Record<string, string>>): string | undefined {
  if (metadata[baseTable] === undefined) return undefined;
  return hash("sha256", JSON.stringify(defining.map((name) => metadata[`${viewPrefix}${name}`] ?? null)));
}

/** Returns the definition in a manifest, which few have. @throws CatalogError InvalidInput, Unsupported */
export function definitionIn({ schemaMetadata: metadata }: Manifest): ViewDefinition | undefined {
  const name = metadata[baseTable];
  if (name === undefined) return undefined;
  const path = metadata[`${viewPrefix}namespace_path`];
  const source_table = path === undefined ? name : `${path}${defaultDelimiter}${name}`;
  const isHere = (metadata[`${viewPrefix}base_table_db_uri`] ?? throughCatalog) === throughCatalog;
  return {
    source: isHere ? parseIdentifier(source_table) : undefined,
    definition: isHere ? { [`${prefix}source_query`]: JSON.stringify({ source_table }) } : {},
    schemaDigest: digestOf(metadata),
  };
}

export interface NewDefinition extends ViewDefinition {
  readonly definer: string;
}

/**
 * Returns a definition with the caller as its definer.
 *
 * @throws CatalogError PermissionDenied unless the caller is a reader of the source. A job, which executes functions of
 * others, defines nothing.
 */
export function definedBy({ principal }: Pick<Caller, "principal">, definition: ViewDefinition): NewDefinition {
  const { source } = definition;
  const { name } = principal;
  if (name.startsWith(jobPrefix))
    throw new CatalogError("PermissionDenied", "a job may not change the definition of a view");
  if (source !== undefined) authorize(principal, [{ role: "reader", object: source }]);
  return { ...definition, definer: name };
}

/** Records the definition of a view, or replaces it. An unchanged one keeps its definer. */
export async function define(session: Session, tableId: number, view: NewDefinition | undefined): Promise<void> {
  if (view === undefined) return;
  const present = await findView(session, tableId);
  if (present !== undefined && present.schemaDigest === view.schemaDigest) return;
  await putView(session, { ...view, tableId });
}
