import { isWritten, requireVersion } from "../commits/read.ts";
import { mainBranch } from "../domain/branch.ts";
import { definitionInSchema, hasDefinition, prepareRefresh } from "../domain/materialized-view.ts";
import { openOnce } from "../domain/open-job.ts";
import { requireTable } from "../domain/require.ts";
import { resolveNames } from "../rows/definitions.ts";
import { schemaMetadataOf } from "../rows/manifest-file.ts";
import { readManifest } from "../rows/schema-metadata.ts";
import type { TableRecord } from "../store/tables.ts";
import type { Catalog, Handler } from "./handler.ts";

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
  if (hasDefinition(table) || !(await isWritten(catalog, table))) return table;
  const latest = await requireVersion(catalog, table, mainBranch, undefined);
  return { properties: definitionInSchema(schemaMetadataOf(await readManifest(catalog, table, latest))) };
}
