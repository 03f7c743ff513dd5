import { CatalogError, formatIdentifier, managementContracts } from "@tiltyard/protocol";
import { z } from "zod";
import { generateApiKey, hashApiKey } from "../../auth/api-key.ts";
import { isReservedKeyId } from "../../auth/reserved-keys.ts";
import { keyText, readPage } from "../../domain/page.ts";
import { makeAudited, type Origin, recordAudit } from "../../domain/transaction.ts";
import * as keys from "../../store/api-keys.ts";
import * as grants from "../../store/grants.ts";
import type { Session } from "../../store/store.ts";
import type { Handler } from "../handler.ts";

export const describeCaller: Handler<"describeCaller"> = async (_request, _catalog, { principal }) => ({
  principal: principal.name,
  grants: principal.grants.map(({ namespace, role }) => ({ namespace, role })),
});

export const listPrincipals: Handler<"listPrincipals"> = async (request, { store }) => {
  const { items, ...page } = await readPage(
    { name: "principals", key: keyText },
    request,
    (after = "", limit) => grants.listPrincipals(store.read, after, limit),
    ({ principal }) => principal,
  );
  return {
    principals: items.map(({ principal, apiKeys, grants }) => ({ principal, api_keys: apiKeys, grants })),
    ...page,
  };
};

export const createApiKey: Handler<"createApiKey"> = async (request, { store }, caller) => {
  const { principal, grant } = request;
  const { id, key } = generateApiKey();
  const properties = { api_key_id: id, principal };
  const transaction = await makeAudited(store, { caller, objects: [[]], properties }, async (session) => {
    await keys.putApiKey(session, id, principal, hashApiKey(key));
    if (grant !== undefined) await grantRole(session, caller, principal, grant);
  });
  return { ...transaction, api_key_id: id, principal, key };
};

const apiKeys = { name: "api-keys", key: z.object({ createdAtMillis: z.int(), id: keyText }) };

export const listApiKeys: Handler<"listApiKeys"> = async (request, { store }) => {
  const { items, ...page } = await readPage(apiKeys, request, (after, limit) =>
    keys.listApiKeys(store.read, request.principal, { after, limit }),
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

export const revokeApiKey: Handler<"revokeApiKey"> = async (request, { store }, caller) => {
  const { api_key_id: id } = request;
  // The next start would install a deleted key of the configuration again.
  const revoke = isReservedKeyId(id) ? keys.revokeApiKeyForever : keys.deleteApiKey;
  const transaction_id = await store.write(async (session) => {
    const principal = await revoke(session, id);
    if (principal === undefined)
      throw new CatalogError("ApiKeyNotFound", `the key ${id} does not exist. See the list of keys`);
    return recordAudit(session, { caller, objects: [[]], properties: { api_key_id: id, principal } });
  });
  return { transaction_id };
};

const grantList = { name: "grants", key: z.object({ principal: keyText, namespace: z.array(keyText) }) };

export const listGrants: Handler<"listGrants"> = async (request, { store }) => {
  const { items, ...page } = await readPage(grantList, request, (after, limit) =>
    grants.listGrants(store.read, request.id, request.principal, { after, limit }),
  );
  return { grants: items, ...page };
};

export const putGrant: Handler<"putGrant"> = async (request, { store }, caller) => {
  const { id: namespace, principal, role } = request;
  const grant = { namespace, role };
  return { transaction_id: await store.write((session) => grantRole(session, caller, principal, grant)) };
};

/** Grants a principal a role on a namespace and replaces its former role there. @returns The name of the transaction. */
async function grantRole(session: Session, caller: Origin, principal: string, grant: grants.Grant): Promise<string> {
  await grants.putGrant(session, principal, grant);
  const { namespace, role } = grant;
  const { operationId: operation } = managementContracts.putGrant;
  const properties = { principal, role };
  return recordAudit(session, { caller: { ...caller, operation }, objects: [namespace], properties });
}

export const revokeGrant: Handler<"revokeGrant"> = async (request, { store }, caller) => {
  const { id, principal } = request;
  return makeAudited(store, { caller, objects: [id], properties: { principal } }, async (session) => {
    if (await grants.deleteGrant(session, principal, id)) return;
    const problem = `${principal} has no role on ${formatIdentifier(id)}; see the list of grants`;
    throw new CatalogError("GrantNotFound", problem);
  });
};
