import { requireNamespace } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

export const namespaceExists: Handler<"namespaceExists"> = async (request, { store }) => {
  await requireNamespace(store.read, request.id);
};
