import { CatalogError, contracts } from "@tiltyard/protocol";
import type { Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.alterTableAddColumns;

export const alterTableAddColumns: Handler<typeof contract> = async (request, { datasets }, caller) => {
  const columns = request.new_columns.map(({ name, expression, computed, virtual_column }, index) => {
    if (computed !== undefined || virtual_column !== undefined)
      throw new CatalogError(
        "Unsupported",
        `new_columns.${index}: a column that is computed again and again is added with Geneva; this catalog takes an expression`,
      );
    if (expression === undefined)
      throw new CatalogError("InvalidInput", `new_columns.${index}: needs an expression, such as "cast(null as int)"`);
    return { name, valueSql: expression };
  });
  await using dataset = await datasets.openForChange({ contract, request, caller });
  const { version } = await dataset.run((table) => table.addColumns(columns));
  return { ...transactionOf(dataset), version };
};
