import type { managementContracts } from "@tiltyard/protocol";
import { readPage } from "../../domain/page.ts";
import { listApiKeys as listKeys } from "../../store/principals.ts";
import type { Handler } from "../handler.ts";

export const listApiKeys: Handler<typeof managementContracts.listApiKeys> = async (request, { store }) => {
  const { items, ...page } = await readPage(
    "api-keys",
    request,
    (cursor, limit) => {
      const after = cursor && { createdAtMillis: Number(cursor[0]), id: String(cursor[1]) };
      return listKeys(store.read, request.principal, { after, limit });
    },
    ({ createdAtMillis, id }) => [createdAtMillis, id],
  );
  return {
    api_keys: items.map(({ id, principal, createdAtMillis }) => ({
      api_key_id: id,
      principal,
      created_at_millis: createdAtMillis,
    })),
    ...page,
  };
};
