import type { contracts } from "@tiltyard/protocol";
import { readPage } from "../domain/page.ts";
import { requireNamespace } from "../domain/require.ts";
import { listChildNamespaces } from "../store/namespaces.ts";
import type { Handler } from "./handler.ts";

export const listNamespaces: Handler<typeof contracts.listNamespaces> = async (request, { store }) => {
  await requireNamespace(store.read, request.id);
  const { items, ...page } = await readPage(
    "namespaces",
    request,
    (cursor, limit) => listChildNamespaces(store.read, request.id, String(cursor?.[0] ?? ""), limit),
    (name) => [name],
  );
  return { namespaces: items, ...page };
};
