import { z } from "zod";
import { keyText, readPage } from "../../domain/page.ts";
import { createApiKey as create, revokeApiKey as revoke } from "../../domain/principals.ts";
import { listApiKeys as listKeys } from "../../store/api-keys.ts";
import type { Handler } from "../handler.ts";

export const createApiKey: Handler<"createApiKey"> = async (request, { store, forgetRoles }, caller) => {
  const { principal, grant } = request;
  const made = await store.write((session) => create(session, { caller, request }, principal, grant));
  forgetRoles(principal);
  return { transaction_id: made.transaction, api_key_id: made.id, principal, key: made.key };
};

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

export const revokeApiKey: Handler<"revokeApiKey"> = async (request, { store }, caller) => ({
  transaction_id: await store.write((session) => revoke(session, { caller, request }, request.api_key_id)),
});
