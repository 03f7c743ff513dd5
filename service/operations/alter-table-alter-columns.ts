import { CatalogError, contracts } from "@tiltyard/protocol";
import { toLanceType } from "../rows/arrow/arrow-schema.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.alterTableAlterColumns;

export const alterTableAlterColumns: Handler<typeof contract> = async (request, { rows }, caller) => {
  const alterations = request.alterations.map(({ path, data_type, rename, nullable, virtual_column }, index) => {
    if (virtual_column !== undefined)
      throw new CatalogError("Unsupported", `alterations.${index}: virtual columns are altered with Geneva`);
    if (data_type === undefined && rename === undefined && nullable === undefined)
      throw new CatalogError("InvalidInput", `alterations.${index}: needs data_type, rename or nullable`);
    return {
      path,
      ...(data_type !== undefined && { dataType: JSON.stringify(toLanceType(data_type)) }),
      ...(rename !== undefined && { rename }),
      ...(nullable !== undefined && { nullable }),
    };
  });
  const { result, transaction } = await rows.change("alterColumns", { contract, request, caller }, { alterations });
  return { ...transaction, version: result.version };
};
