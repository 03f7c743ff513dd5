import { keyText, readPage } from "../domain/page.ts";
import { requireNamespace } from "../domain/require.ts";
import { listTables as listNames } from "../store/tables.ts";
import type { Handler } from "./handler.ts";

export const listTables: Handler<"listTables"> = async (request, { store }) => {
  const { id, include_declared: includeDeclared = true, page_token, limit } = request;
  await requireNamespace(store.read, id);
  const { items, ...page } = await store.cached(
    JSON.stringify(["tables", id, includeDeclared, page_token, limit]),
    () =>
      readPage(
        { name: "tables", key: keyText, takesKeys: true },
        request,
        (after = "", count) => listNames(store.read, id, after, { limit: count, includeDeclared }),
        (name) => name,
      ),
  );
  return { tables: items, ...page };
};
