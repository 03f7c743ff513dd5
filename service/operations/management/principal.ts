import { z } from "zod";
import { keyText, readPage } from "../../domain/page.ts";
import * as principals from "../../domain/principals.ts";
import { listApiKeys as listKeys } from "../../store/api-keys.ts";
import { listGrants as listGrantRecords } from "../../store/grants.ts";
import { listPrincipals as listSummaries } from "../../store/principals.ts";
import type { Handler } from "../handler.ts";

export const describeCaller: Handler<"describeCaller"> = async (_request, _catalog, { principal }) => ({
  principal: principal.name,
  grants: principal.grants.map(({ namespace, role }) => ({ namespace: [...namespace], role })),
});

export const listPrincipals: Handler<"listPrincipals"> = async (request, { store }) => {
  const { items, ...page } = await readPage(
    { name: "principals", key: keyText },
    request,
    (after = "", limit) => listSummaries(store.read, after, limit),
    ({ principal }) => principal,
  );
  return {
    principals: items.map(({ principal, apiKeys, grants }) => ({ principal, api_keys: apiKeys, grants })),
    ...page,
  };
};

export const createApiKey: Handler<"createApiKey"> = async (request, { store, forgetRoles }, caller) => {
  const { principal, grant } = request;
  const made = await store.write((session) => principals.createApiKey(session, { caller, request }, principal, grant));
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
  transaction_id: await store.write((session) =>
    principals.revokeApiKey(session, { caller, request }, request.api_key_id),
  ),
});

const grants = { name: "grants", key: z.object({ principal: keyText, namespace: z.array(keyText) }) };

export const listGrants: Handler<"listGrants"> = async (request, { store }) => {
  const { items, ...page } = await readPage(
    grants,
    request,
    (after, limit) => listGrantRecords(store.read, request.id, request.principal, { after, limit }),
    ({ principal, namespace }) => ({ principal, namespace: [...namespace] }),
  );
  return {
    grants: items.map(({ principal, namespace, role }) => ({ principal, namespace: [...namespace], role })),
    ...page,
  };
};

export const putGrant: Handler<"putGrant"> = async (request, { store, forgetRoles }, caller) => {
  const { id: namespace, principal, role } = request;
  const grant = { namespace, role };
  const transaction = await store.write((session) =>
    principals.putGrant(session, { caller, request }, principal, grant),
  );
  forgetRoles(principal);
  return { transaction_id: transaction };
};

export const revokeGrant: Handler<"revokeGrant"> = async (request, { store, forgetRoles }, caller) => {
  const { id, principal } = request;
  const transaction = await store.write((session) =>
    principals.revokeGrant(session, { caller, request }, principal, id),
  );
  forgetRoles(principal);
  return { transaction_id: transaction };
};
