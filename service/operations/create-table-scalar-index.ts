import { CatalogError, contracts } from "@tiltyard/protocol";
import { scalarTypes } from "../rows/index-types.ts";
import { createIndex } from "./create-table-index.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.createTableScalarIndex;

export const createTableScalarIndex: Handler<"createTableScalarIndex"> = async (request, catalog, caller) => {
  if (!scalarTypes.includes(request.index_type.toUpperCase()))
    throw new CatalogError("InvalidInput", `index_type: must be one of ${scalarTypes.join(", ")}`);
  return createIndex(contract, request, catalog, caller);
};
