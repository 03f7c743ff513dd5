import { createApiKey as create } from "../../domain/principals.ts";
import type { Handler } from "../handler.ts";

export const createApiKey: Handler<"createApiKey"> = async (request, { store, forgetRoles }, caller) => {
  const { principal, grant } = request;
  const made = await store.write((session) => create(session, { caller, request }, principal, grant));
  forgetRoles(principal);
  return { transaction_id: made.transaction, api_key_id: made.id, principal, key: made.key };
};
