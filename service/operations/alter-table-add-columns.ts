import { CatalogError, contracts, type RequestOf } from "@tiltyard/protocol";
import { backfillNewRows } from "../automation/register.ts";
import { ensureSystemNamespace } from "../domain/system-namespace.ts";
import { storeFunctions } from "../rows/virtual-column.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.alterTableAddColumns;
type NewColumn = RequestOf<typeof contract>["new_columns"][number];

/**
 * Adds columns. Expressions are evaluated immediately; computed columns and function columns start without values,
 * which a job fills in.
 */
export const alterTableAddColumns: Handler<"alterTableAddColumns"> = async (request, catalog, caller) => {
  request.new_columns.forEach(requireOneDefinition);
  const expressions = sqlOf(request.new_columns, "expression");
  const computed = sqlOf(request.new_columns, "computed");
  const ofFunctions = request.new_columns.flatMap(({ virtual_column }) => virtual_column ?? []);
  let schema: ReadableStream<Uint8Array> | undefined;
  if (ofFunctions.length > 0) {
    await ensureSystemNamespace(catalog, { caller, request }, request.id);
    schema = await storeFunctions(catalog, { ...request, caller }, ofFunctions);
  }
  const added = { computed, expressions, hasSchema: schema !== undefined };
  const sent = schema === undefined ? {} : { rows: schema };
  const { result, transaction } = await catalog.rows.change("addColumns", { contract, request, caller }, added, sent);
  for (const { auto_backfill, outputs } of ofFunctions) {
    // All outputs of a function are filled together.
    const [first] = outputs;
    if (auto_backfill && first !== undefined) await backfillNewRows(catalog, request.id, first.column, caller);
  }
  return { ...transaction, version: result.version };
};

function requireOneDefinition({ expression, computed, virtual_column }: NewColumn, index: number): void {
  const given = [expression, computed, virtual_column].filter((each) => each !== undefined);
  if (given.length !== 1)
    throw new CatalogError(
      "InvalidInput",
      `new_columns.${index}: needs one of expression, such as "cast(null as int)", computed and virtual_column`,
    );
}

function sqlOf(columns: readonly NewColumn[], kind: "expression" | "computed"): { name: string; valueSql: string }[] {
  return columns.flatMap(({ name, [kind]: valueSql }) => (valueSql === undefined ? [] : [{ name, valueSql }]));
}
