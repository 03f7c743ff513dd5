import { CatalogError, contracts, type RequestOf } from "@tiltyard/protocol";
import { requireMain } from "../domain/branch.ts";
import { requireNameable } from "../domain/job.ts";
import { openTableJob, requireNoOpenBackfill } from "../domain/open-job.ts";
import { toLanceType } from "../rows/arrow/arrow-schema.ts";
import { manifestOfColumn, replaceFunction } from "../rows/virtual-column.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";

const contract = contracts.alterTableAlterColumns;
type Request = RequestOf<typeof contract>;
type Alteration = Request["alterations"][number];

/** Changes columns. Another function of a column opens a job that computes the rows of the former function again. */
export const alterTableAlterColumns: Handler<"alterTableAlterColumns"> = async (request, catalog, caller) => {
  request.alterations.forEach(requireOneKind);
  const ofFunctions = request.alterations.filter(({ virtual_column }) => virtual_column !== undefined);
  if (ofFunctions.length === 0) {
    const alterations = request.alterations.map(toChange);
    const { result, transaction } = await catalog.rows.change(
      "alterColumns",
      { contract, request, caller },
      { alterations },
    );
    return { ...transaction, version: result.version };
  }
  if (ofFunctions.length < request.alterations.length)
    throw new CatalogError("InvalidInput", "alterations: functions are replaced in a request of their own");
  return replaceFunctions(request, catalog, caller);
};

/** All functions are replaced in one version. Their jobs open after it. */
async function replaceFunctions(request: Request, catalog: Catalog, caller: AuthorizedCaller) {
  const { store, rows } = catalog;
  requireMain(request);
  requireNameable(request.id);
  const at = { ...request, caller };
  for (const { path } of request.alterations) await requireNoOpenBackfill(store, request.id, path);
  const replaced = [];
  for (const each of request.alterations) replaced.push(await replaceFunction(catalog, at, each));
  const updates = replaced.map((each) => ({ ...each, replace: false }));
  const { result, transaction } = await rows.change("updateFieldMetadata", { contract, request, caller }, { updates });
  for (const { path: column, metadata } of replaced) {
    const { id, delimiter } = request;
    const manifest = metadata[manifestOfColumn] ?? undefined;
    const backfill = { id, delimiter, column, where: everyRow, manifest };
    await openTableJob(store, { contract: contracts.alterTableBackfillColumns, request: backfill, caller });
  }
  return { ...transaction, version: result.version };
}

/** Every row with a value has that of the former function. Geneva computes only rows without a value by default. */
const everyRow = "true";

function requireOneKind({ data_type, rename, nullable, virtual_column }: Alteration, index: number): void {
  const isBasic = [data_type, rename, nullable].some((each) => each !== undefined);
  if (isBasic === (virtual_column !== undefined))
    throw new CatalogError(
      "InvalidInput",
      `alterations.${index}: needs data_type, rename or nullable, or else virtual_column`,
    );
}

function toChange({ path, data_type, rename, nullable }: Alteration) {
  return {
    path,
    ...(data_type !== undefined && { dataType: JSON.stringify(toLanceType(data_type)) }),
    ...(rename !== undefined && { rename }),
    ...(nullable !== undefined && { nullable }),
  };
}
