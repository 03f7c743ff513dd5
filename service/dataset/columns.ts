import { CatalogError, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import { readSchema } from "./arrow-schema.ts";
import type { Datasets } from "./datasets.ts";
import { isAutomatic, manifestOfColumn } from "./virtual-column.ts";

/**
 * Checks the request of a backfill before it runs. Without Lance's library nothing can be checked: then the job reports it.
 *
 * @param where A condition for the rows; undefined for none.
 * @returns The manifest that the column's function was stored with: where the function runs. Whether new rows are
 *   filled by themselves.
 * @throws CatalogError TableVersionNotFound, TableColumnNotFound, and InvalidInput for a column that nothing computes,
 *   for an invalid condition, and for a limit that the column does not support.
 */
export async function checkBackfill(
  datasets: Datasets,
  request: { readonly id: Identifier; readonly column: string; readonly where?: string | undefined } & Limits,
): Promise<{ readonly manifest?: string | undefined; readonly isAutomatic: boolean }> {
  const { id, column, where } = request;
  try {
    await using dataset = await datasets.openVersion({ id });
    const { fields } = readSchema(await dataset.runRaw((table) => table.schema()));
    const metadata = requireComputed(fields, id, column);
    // Nothing is read for a plan, but the condition is.
    if (where !== undefined) await dataset.run((table) => table.query().where(where).limit(1).explainPlan());
    if (metadata.virtual_column !== "true") refuseLimits(request);
    return { manifest: metadata[manifestOfColumn], isAutomatic: isAutomatic(metadata) };
  } catch (error) {
    if (!(error instanceof CatalogError && error.kind === "Unsupported")) throw error;
    return { isAutomatic: false };
  }
}

/** What a request may limit a backfill to, besides `read_version`, which Geneva's client always sends. */
const limits = ["where", "num_frags"] as const;
type Limits = { readonly [Name in (typeof limits)[number]]?: unknown };

/** lancedb fills all rows of a computed column that need it, whatever the limits of the request. */
function refuseLimits(request: Limits): void {
  const given = limits.find((name) => request[name] !== undefined);
  if (given === undefined) return;
  throw new CatalogError("InvalidInput", `${given}: a column with computed is filled as a whole: leave ${given} out`);
}

/**
 * Checks that the latest version of a table has a column. Without Lance's library nothing is known.
 *
 * @throws CatalogError TableNotFound, TableVersionNotFound, TableColumnNotFound
 */
export async function requireColumn(
  datasets: Datasets,
  { id, column }: { readonly id: Identifier; readonly column: string },
): Promise<void> {
  try {
    await using dataset = await datasets.openVersion({ id });
    findField(readSchema(await dataset.runRaw((table) => table.schema())).fields, id, column);
  } catch (error) {
    if (!(error instanceof CatalogError && error.kind === "Unsupported")) throw error;
  }
}

type Fields = ReturnType<typeof readSchema>["fields"];

function findField(fields: Fields, id: Identifier, column: string): Fields[number] {
  const field = fields.find(({ name }) => name === column);
  if (field !== undefined) return field;
  throw new CatalogError("TableColumnNotFound", `table ${formatIdentifier(id)} has no column ${column}`);
}

/** @returns The column's metadata. */
function requireComputed(fields: Fields, id: Identifier, column: string): Readonly<Record<string, string>> {
  const { metadata = {} } = findField(fields, id, column);
  if (metadata.virtual_column === "true" || metadata.computed_column !== undefined) return metadata;
  throw new CatalogError(
    "InvalidInput",
    `column: ${column} is not computed: add it by add_columns with virtual_column or computed`,
  );
}
