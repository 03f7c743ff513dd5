import { foundMax } from "@tiltyard/protocol";
import { searchColumns } from "../../store/columns.ts";
import { searchNamespaces, searchTables } from "../../store/search.ts";
import type { Handler } from "../handler.ts";

export const searchNamespace: Handler<"searchNamespace"> = async (
  { id: within, name, delimiter, limit = foundMax },
  { store },
) => {
  const search = { within, parts: name.split(delimiter), limit: Math.min(limit, foundMax) };
  return {
    namespaces: (await searchNamespaces(store.read, search)).map((found) => [...found]),
    tables: (await searchTables(store.read, search)).map((found) => [...found]),
    columns: (await searchColumns(store.read, search)).map(({ table, column }) => ({ table: [...table], column })),
  };
};
