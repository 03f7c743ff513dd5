import { putGrant as put } from "../../domain/principals.ts";
import type { Handler } from "../handler.ts";

export const putGrant: Handler<"putGrant"> = async (request, { store, forgetRoles }, caller) => {
  const { id: namespace, principal, role } = request;
  const grant = { namespace, role };
  const transaction = await store.write((session) => put(session, { caller, request }, principal, grant));
  forgetRoles(principal);
  return { transaction_id: transaction };
};
