import { CatalogError, contracts, type Identifier, sourceOfView } from "@tiltyard/protocol";
import { prepareForNewRows } from "../automation/register.ts";
import { isWritten, readManifest, requireVersion } from "../commits/read.ts";
import { mainBranch } from "../domain/branch.ts";
import {
  definitionInSchema,
  definitionOf,
  hasDefinition,
  prepareRefresh,
  type ViewSource,
  viewMetadata,
} from "../domain/materialized-view.ts";
import { openOnce } from "../domain/open-job.ts";
import { requireTable } from "../domain/require.ts";
import { ensureSystemNamespace } from "../domain/system-namespace.ts";
import { withMetadata } from "../rows/arrow/arrow-type.ts";
import { ByteReader } from "../rows/arrow/message-stream.ts";
import { splitStream } from "../rows/arrow/split-stream.ts";
import { createTableWithRows } from "../rows/create-table.ts";
import { resolveNames } from "../rows/definitions.ts";
import { hasStableRowIds, schemaMetadataOf } from "../rows/manifest-file.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import type { Catalog, Handler } from "./handler.ts";

/** Creates a view: a table without rows, which the compute side fills at the first refresh. */
export const createMaterializedView: Handler<"createMaterializedView"> = async (request, catalog, caller) => {
  const properties = definitionOf(request);
  // A view without a possible refresh is useless, so this check precedes all changes.
  const refresh = prepareRefresh({ properties }, { id: request.id, delimiter: request.delimiter }, caller);
  const schema = await readSchema(request.output_schema);
  await ensureSystemNamespace(catalog, { caller, request }, request.id);
  const id = sourceOfView(request);
  const source = id && (await describeSource(catalog, id));
  const described = source === undefined ? schema : await withMetadata(schema, viewMetadata(request, source));
  // Geneva itself creates views this way.
  const stableRowIds = source?.hasStableRowIds ?? false;
  const register = request.auto_refresh && id && (await prepareForNewRows(catalog, id, caller));
  const { with_no_data: hasNoData = true } = request;
  // A client cannot create the view again, so all of it exists or nothing.
  const alongside = async (session: Session, view: TableRecord) => {
    if (register) await register(session, { kind: "refresh", target: String(view.id) });
    if (!hasNoData) await refresh.open(session);
  };
  const change = { contract: contracts.createMaterializedView, request, caller, properties, alongside };
  const { version } = await createTableWithRows(catalog, change, described.stream(), { stableRowIds });
  return { version, ...(!hasNoData && { job_id: refresh.name }) };
};

/** Returns the state of the source. @throws CatalogError TableNotFound, TableVersionNotFound, Unsupported */
async function describeSource(catalog: Catalog, id: Identifier): Promise<ViewSource> {
  const table = await requireTable(catalog.store.read, id);
  const latest = await requireVersion(catalog, table, mainBranch, undefined);
  return { version: latest.version, hasStableRowIds: hasStableRowIds(await readManifest(catalog, table, latest)) };
}

/** Reads the message of a schema, which is the beginning of an Arrow stream without the rest. */
async function readSchema(base64: string): Promise<Blob> {
  const schema = new Blob([Buffer.from(base64, "base64")]);
  try {
    for await (const { rows } of splitStream(new ByteReader(schema.stream())))
      if (rows > 0) throw new CatalogError("InvalidInput", "it has rows");
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error;
    throw new CatalogError("InvalidInput", `output_schema: is not an Arrow schema: ${error.message}`);
  }
  return schema;
}

/** Opens a job, like `AlterTableBackfillColumns`. */
export const refreshMaterializedView: Handler<"refreshMaterializedView"> = async (request, catalog, caller) => {
  const { store } = catalog;
  const view = await withDefinition(catalog, await requireTable(store.read, request.id));
  const named = await resolveNames(catalog, { ...request, caller });
  const job = prepareRefresh(view, { ...request, ...named }, caller);
  return { job_id: await openOnce(store, job) };
};

/** Adds the definition of a view that Geneva itself created, which exists only in the metadata of its schema. */
async function withDefinition(catalog: Catalog, table: TableRecord): Promise<Pick<TableRecord, "properties">> {
  if (hasDefinition(table) || !(await isWritten(catalog, table, mainBranch))) return table;
  const latest = await requireVersion(catalog, table, mainBranch, undefined);
  return { properties: definitionInSchema(schemaMetadataOf(await readManifest(catalog, table, latest))) };
}
