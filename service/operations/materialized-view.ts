import { ByteReader, schemaWith, splitStream } from "@tiltyard/lance-worker";
import { CatalogError, type Identifier, mainBranch, sourceOfView } from "@tiltyard/protocol";
import { prepareForNewRows } from "../automation/table-state.ts";
import { readManifest, requireVersion, viewOf } from "../commits/read.ts";
import { requireTable } from "../domain/require.ts";
import { ensureSystemNamespace, resolveNames } from "../geneva/definitions.ts";
import { openOnce } from "../jobs/open-job.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { putView } from "../store/views.ts";
import {
  definedBy,
  definitionOf,
  parametersOf,
  type ViewSource,
  viewMetadata,
  withSourceInCatalog,
} from "../views/definition.ts";
import { prepareRefresh, requireReadableSource } from "../views/refresh.ts";
import type { Catalog, Handler } from "./handler.ts";
import { createTableWithRows } from "./table-data.ts";

/** Creates a view: a table without rows, which the compute side fills at the first refresh. */
export const createMaterializedView: Handler<"createMaterializedView"> = async (given, catalog, caller) => {
  const request = withSourceInCatalog(given);
  // A view without a possible refresh is useless, so this check precedes all changes.
  const refresh = prepareRefresh({ definition: parametersOf(request) }, { id: request.id }, caller);
  const schema = await readSchema(request.output_schema);
  await ensureSystemNamespace(catalog, caller, request.id);
  const id = sourceOfView(request);
  const source = id && (await describeSource(catalog, id));
  const metadata = source === undefined ? {} : viewMetadata(request, source);
  const described = source === undefined ? schema : schemaWith(schema, metadata);
  const definition = definedBy(caller, definitionOf(request, metadata));
  // Geneva itself creates views this way.
  const stableRowIds = source?.hasStableRowIds ?? false;
  const register = request.auto_refresh && id && (await prepareForNewRows(catalog, id, caller));
  const { with_no_data: hasNoData = true } = request;
  // A client cannot create the view again, so all of it exists or nothing.
  const alongside = async (session: Session, view: TableRecord) => {
    await putView(session, { ...definition, tableId: view.id });
    if (register) await register(session, { kind: "refresh", target: String(view.id) });
    if (!hasNoData) await refresh.open(session, catalog.openJobMaxima);
  };
  const change = { request, caller, alongside };
  const { version } = await createTableWithRows(catalog, change, new Blob([described]).stream(), { stableRowIds });
  return { version, ...(!hasNoData && { job_id: refresh.name }) };
};

/** Returns the state of the source. @throws CatalogError TableNotFound, TableVersionNotFound, Unsupported */
async function describeSource(catalog: Catalog, id: Identifier): Promise<ViewSource> {
  const table = await requireTable(catalog.store.read, id);
  const latest = await requireVersion(catalog, { table, branch: mainBranch }, undefined);
  const stable = await readManifest(catalog, table, latest, ({ hasStableRowIds }) => hasStableRowIds);
  return { version: latest.version, hasStableRowIds: stable };
}

/** Reads the message of a schema, which is the beginning of an Arrow stream without the rest. */
async function readSchema(base64: string): Promise<Buffer> {
  const schema = Buffer.from(base64, "base64");
  try {
    for await (const { rows } of splitStream(new ByteReader(new Blob([schema]).stream())))
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
  const view = await viewOf(catalog, await requireTable(store.read, request.id));
  if (view !== undefined) await requireReadableSource(store.read, view, caller);
  const named = await resolveNames(catalog, { ...request, caller });
  const job = prepareRefresh(view, { ...request, ...named }, caller);
  return { job_id: await openOnce(catalog, job) };
};
