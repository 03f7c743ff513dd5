import { keyText, readPage } from "../domain/page.ts";
import { requireNamespace } from "../domain/require.ts";
import { listChildNamespaces } from "../store/namespaces.ts";
import type { Handler } from "./handler.ts";

export const listNamespaces: Handler<"listNamespaces"> = async (request, { store }) => {
  await requireNamespace(store.read, request.id);
  const { items, ...page } = await readPage(
    { name: "namespaces", key: keyText },
    request,
    (after = "", limit) => listChildNamespaces(store.read, request.id, after, limit),
    (name) => name,
  );
  return { namespaces: items, ...page };
};
