import { revokeGrant as revoke } from "../../domain/principals.ts";
import type { Handler } from "../handler.ts";

export const revokeGrant: Handler<"revokeGrant"> = async (request, { store, forgetRoles }, caller) => {
  const { id, principal } = request;
  const transaction = await store.write((session) => revoke(session, { caller, request }, principal, id));
  forgetRoles(principal);
  return { transaction_id: transaction };
};
