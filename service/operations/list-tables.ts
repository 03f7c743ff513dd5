import type { contracts } from "@tiltyard/protocol";
import { keyText, readPage } from "../domain/page.ts";
import { requireNamespace } from "../domain/require.ts";
import { listTables as listNames } from "../store/tables.ts";
import type { Handler } from "./handler.ts";

export const listTables: Handler<typeof contracts.listTables> = async (request, { store }) => {
  await requireNamespace(store.read, request.id);
  const includeDeclared = request.include_declared ?? true;
  const { items, ...page } = await readPage(
    { name: "tables", key: keyText },
    request,
    (after = "", limit) => listNames(store.read, request.id, after, { limit, includeDeclared }),
    (name) => name,
  );
  return { tables: items, ...page };
};
