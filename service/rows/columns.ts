import { CatalogError, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import type { ResultOf } from "./call.ts";
import type { ReadOperations } from "./child/operations.ts";
import { findField, pathOf } from "./field-path.ts";
import type { Reader, VersionRequest } from "./reader.ts";
import { toExpression } from "./sql-text.ts";
import { isAutomatic, manifestOfColumn } from "./virtual-column.ts";

/**
 * Validates a backfill request before the job runs. Without Lance's library, the job itself reports the problems.
 *
 * @returns The manifest of the column's function, which determines its environment, and whether new rows are filled
 * automatically.
 * @throws CatalogError TableVersionNotFound, TableColumnNotFound; InvalidInput for a column that is not computed, an
 * invalid condition, and a limit that the column does not support.
 */
export async function checkBackfill(
  rows: Reader,
  request: ColumnRequest & { readonly where?: string | undefined } & Limits,
): Promise<{ readonly manifest?: string | undefined; readonly isAutomatic: boolean }> {
  const { id, column, where, caller } = request;
  try {
    const { version, result } = await rows.read("schema", { id, caller }, {});
    const { fields } = result;
    const metadata = requireComputed(fields, id, column);
    // A plan parses the condition without reading rows.
    if (where !== undefined) await rows.read("planFilter", { id, version, caller }, { filter: toExpression(where) });
    if (metadata.virtual_column !== "true") refuseLimits(request);
    return { manifest: metadata[manifestOfColumn], isAutomatic: isAutomatic(metadata) };
  } catch (error) {
    if (!(error instanceof CatalogError && error.kind === "Unsupported")) throw error;
    return { isAutomatic: false };
  }
}

interface ColumnRequest extends Pick<VersionRequest, "id" | "caller"> {
  readonly column: string;
}

/** The limits of a backfill, except for `read_version`, which Geneva's client always sends. */
const limits = ["where", "num_frags"] as const;
type Limits = { readonly [Name in (typeof limits)[number]]?: unknown };

/** Rejects limits for a computed column, because lancedb fills all of its rows without a current value. */
function refuseLimits(request: Limits): void {
  const given = limits.find((name) => request[name] !== undefined);
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
    return pathOf(found);
  } catch (error) {
    if (!(error instanceof CatalogError && error.kind === "Unsupported")) throw error;
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
  if (metadata.virtual_column === "true" || metadata.computed_column !== undefined) return metadata;
  throw new CatalogError("InvalidInput", `column: ${column} is not computed: add it with virtual_column or computed`);
}
