import { z } from "zod";
import { keyText, readPage } from "../../domain/page.ts";
import { listApiKeys as listKeys } from "../../store/api-keys.ts";
import type { Handler } from "../handler.ts";

const apiKeys = { name: "api-keys", key: z.object({ createdAtMillis: z.int(), id: keyText }) };

export const listApiKeys: Handler<"listApiKeys"> = async (request, { store }) => {
  const { items, ...page } = await readPage(
    apiKeys,
    request,
    (after, limit) => listKeys(store.read, request.principal, { after, limit }),
    ({ createdAtMillis, id }) => ({ createdAtMillis, id }),
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
