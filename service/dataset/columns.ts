import { CatalogError, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import { readSchema } from "./arrow-schema.ts";
import type { Datasets } from "./datasets.ts";
import { isAutomatic, manifestOfColumn } from "./virtual-column.ts";

/**
 * Checks what can be checked of a backfill before it runs. Without Lance's library nothing can: then the job tells.
 *
 * @param where A condition for the rows; undefined for none.
 * @returns The manifest that the column's function was stored with: where the function runs. Whether new rows are
 *   filled by themselves.
 * @throws CatalogError TableVersionNotFound, TableColumnNotFound, and InvalidInput for a column that nothing computes
 *   and for a condition that is none.
 */
export async function checkBackfill(
  datasets: Datasets,
  { id, column, where }: { readonly id: Identifier; readonly column: string; readonly where?: string | undefined },
): Promise<{ readonly manifest?: string | undefined; readonly isAutomatic: boolean }> {
  try {
    await using dataset = await datasets.openVersion({ id });
    const { fields } = readSchema(await dataset.runRaw((table) => table.schema()));
    const metadata = requireComputed(fields, id, column);
    // Nothing is read for a plan, but the condition is.
    if (where !== undefined) await dataset.run((table) => table.query().where(where).limit(1).explainPlan());
    return { manifest: metadata[manifestOfColumn], isAutomatic: isAutomatic(metadata) };
  } catch (error) {
    if (!(error instanceof CatalogError && error.kind === "Unsupported")) throw error;
    return { isAutomatic: false };
  }
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
