import { z } from "zod";
import { keyText, readPage } from "../../domain/page.ts";
import { putGrant as put, revokeGrant as revoke } from "../../domain/principals.ts";
import { listGrants as list } from "../../store/grants.ts";
import type { Handler } from "../handler.ts";

const grants = { name: "grants", key: z.object({ principal: keyText, namespace: z.array(keyText) }) };

export const listGrants: Handler<"listGrants"> = async (request, { store }) => {
  const { items, ...page } = await readPage(
    grants,
    request,
    (after, limit) => list(store.read, request.id, request.principal, { after, limit }),
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
  const transaction = await store.write((session) => put(session, { caller, request }, principal, grant));
  forgetRoles(principal);
  return { transaction_id: transaction };
};

export const revokeGrant: Handler<"revokeGrant"> = async (request, { store, forgetRoles }, caller) => {
  const { id, principal } = request;
  const transaction = await store.write((session) => revoke(session, { caller, request }, principal, id));
  forgetRoles(principal);
  return { transaction_id: transaction };
};
