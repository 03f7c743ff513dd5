import { requireNamespace } from "../domain/require.ts";
import type { Handler } from "../operations/handler.ts";
import { listTables } from "../store/tables.ts";

/** The maximum length of the response to a request without a limit. The client reads no page tokens. */
const limitMax = 10_000;

export const remoteListTables: Handler<"remoteListTables"> = async (request, { store }) => {
  await requireNamespace(store.read, request.id);
  const limit = Math.min(request.limit ?? limitMax, limitMax);
  return {
    tables: await listTables(store.read, request.id, request.page_token ?? "", { limit, includeDeclared: true }),
  };
};
