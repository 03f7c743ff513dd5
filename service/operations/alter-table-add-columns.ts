import { CatalogError, contracts, type RequestOf } from "@tiltyard/protocol";
import { backfillNewRows } from "../automation/register.ts";
import { storeFunctions } from "../dataset/virtual-column.ts";
import { ensureSystemNamespace } from "../domain/system-namespace.ts";
import type { Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.alterTableAddColumns;
type NewColumn = RequestOf<typeof contract>["new_columns"][number];

/**
 * Columns of an expression have their values at once. Those that are computed again and again, by an
 * expression or by a function, begin without values, which a job fills in.
 */
export const alterTableAddColumns: Handler<typeof contract> = async (request, catalog, caller) => {
  request.new_columns.forEach(requireOneDefinition);
  const expressions = sqlOf(request.new_columns, "expression");
  const computed = sqlOf(request.new_columns, "computed");
  await using dataset = await catalog.datasets.openForChange({ contract, request, caller });
  const ofFunctions = request.new_columns.flatMap(({ virtual_column }) => virtual_column ?? []);
  const additions: (() => Promise<{ readonly version: number }>)[] = [];
  // First: for these the library opens the latest version again, which must not be one that is held back.
  if (computed.length > 0) additions.push(() => dataset.run((table) => table.addColumns({ computed })));
  if (expressions.length > 0) additions.push(() => dataset.run((table) => table.addColumns(expressions)));
  if (ofFunctions.length > 0) {
    await ensureSystemNamespace(catalog.store, { caller, request });
    const schema = await storeFunctions(catalog.storage, dataset, ofFunctions);
    additions.push(() => dataset.runRaw((table) => table.addColumnsWithSchema(schema)));
  }
  const { commits } = dataset;
  if (additions.length > 1) commits.hold();
  try {
    let version = dataset.version;
    for (const add of additions) ({ version } = await add());
    if (additions.length > 1) await commits.publish();
    for (const { auto_backfill, outputs } of ofFunctions) {
      // A function has all its outputs filled together.
      const [first] = outputs;
      if (auto_backfill && first !== undefined) await backfillNewRows(catalog, request.id, first.column, caller);
    }
    return { ...transactionOf(dataset), version };
  } catch (error) {
    await commits.discard().catch(() => undefined);
    throw error;
  }
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
