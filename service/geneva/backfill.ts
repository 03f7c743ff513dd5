import { findField, pathOf, type ReadOperations, type ResultOf, toExpression } from "@tiltyard/lance-worker";
import {
  CatalogError,
  contracts,
  formatIdentifier,
  functionBindingKey,
  hasKind,
  type Identifier,
} from "@tiltyard/protocol";
import { optionNamesOf } from "../jobs/parameters.ts";
import type { Reader, ReadRequest } from "../rows/reader.ts";
import { firstColumnOf, isAutomatic, manifestOfColumn, requireFillable } from "./virtual-column.ts";

/**
 * Validates a backfill request before the job runs. Without Lance's library, the job itself reports the problems.
 *
 * @returns The column of the job, which is the first of those that a function fills together; the manifest of the
 * function, which determines its environment, and whether new rows are filled automatically; or the binding of a Function.
 * @throws CatalogError TableVersionNotFound, TableColumnNotFound; InvalidInput for a column that is not computed or that
 * Geneva cannot fill, an invalid condition, and a limit that the column does not support.
 */
export async function checkBackfill(
  rows: Reader,
  { caller, ...request }: ColumnRequest & Limits & { readonly where?: string | undefined },
): Promise<CheckedBackfill> {
  const { id, column, where } = request;
  try {
    const { version, result } = await rows.read("schema", { id, caller }, {});
    const { fields } = result;
    const metadata = requireComputed(fields, id, column);
    const { [functionBindingKey]: binding } = metadata;
    if (binding !== undefined) return { column, binding, isAutomatic: false };
    // A plan parses the condition without reading rows.
    if (where !== undefined) await rows.read("planFilter", { id, version, caller }, { filter: toExpression(where) });
    if (metadata.virtual_column === "true") requireFillable(column);
    else refuseLimits(request);
    requireSkip(request);
    const first = firstColumnOf(fields, metadata) ?? column;
    return { column: first, manifest: metadata[manifestOfColumn], isAutomatic: isAutomatic(metadata) };
  } catch (error) {
    if (!hasKind(error, "Unsupported")) throw error;
    return { column, isAutomatic: false };
  }
}

interface CheckedBackfill {
  readonly column: string;
  readonly manifest?: string | undefined;
  readonly isAutomatic: boolean;
  readonly binding?: string | undefined;
}

interface ColumnRequest extends Pick<ReadRequest, "id" | "caller"> {
  readonly column: string;
}

const skipLimits = ["max_failed_rows", "max_failed_fraction"] as const;
/** The limits of a backfill, except for `read_version`, which Geneva's client always sends. */
const limits = ["where", "num_frags", "error_policy", ...skipLimits] as const;
type Limits = { readonly [Name in (typeof limits)[number]]?: unknown } & Readonly<Record<string, unknown>>;

function requireSkip(request: Limits): void {
  const given = skipLimits.find((name) => request[name] !== undefined);
  if (given === undefined || request.error_policy === "skip") return;
  throw new CatalogError(
    "InvalidInput",
    `${given}: needs error_policy "skip", because a job fails with the first row otherwise`,
  );
}

/** Rejects limits and options for a computed column, because lancedb fills all of its rows without a current value. */
function refuseLimits(request: Limits): void {
  const [option] = optionNamesOf(contracts.alterTableBackfillColumns.operationId, request);
  const given = limits.find((name) => request[name] !== undefined) ?? option;
  if (given === undefined) return;
  throw new CatalogError("InvalidInput", `${given}: a job fills all rows of a column with computed. Omit ${given}`);
}

/**
 * Returns the path of a column as Lance lists it, after checking that a job can build an index of it. Without Lance's
 * library, nothing is checked.
 *
 * @throws CatalogError TableNotFound, TableVersionNotFound, TableColumnNotFound; InvalidInput for vectors in a struct.
 */
export async function indexedColumn(
  rows: Reader,
  { id, column, index_type, caller }: ColumnRequest & { readonly index_type: string },
): Promise<string> {
  try {
    const { result } = await rows.read("schema", { id, caller }, {});
    const found = findField(result.fields, column);
    if (found === undefined) throw missing(id, column);
    // Lance trains the model that segments share only for vectors at the top.
    if (found.names.length > 1 && index_type.startsWith("IVF"))
      throw new CatalogError(
        "InvalidInput",
        `column: a job cannot build ${index_type} on vectors in a struct, such as ${column}: call CreateTableIndex`,
      );
    return pathOf(found.names);
  } catch (error) {
    if (!hasKind(error, "Unsupported")) throw error;
    return column;
  }
}

type Fields = ResultOf<ReadOperations["schema"]>["fields"];

function missing(id: Identifier, column: string): CatalogError {
  return new CatalogError("TableColumnNotFound", `table ${formatIdentifier(id)} has no column ${column}`);
}

/** Requires a computed column. @returns Its metadata. */
function requireComputed(fields: Fields, id: Identifier, column: string): Readonly<Record<string, string>> {
  const field = fields.find(({ name }) => name === column);
  if (field === undefined) throw missing(id, column);
  const { metadata = {} } = field;
  const isComputed = metadata.virtual_column === "true" || metadata.computed_column !== undefined;
  if (isComputed || metadata[functionBindingKey] !== undefined) return metadata;
  throw new CatalogError(
    "InvalidInput",
    `column: ${column} is not computed: add it with virtual_column or computed, or by a Function`,
  );
}
