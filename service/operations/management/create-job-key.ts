import { createJobKey as create } from "../../domain/job-key.ts";
import type { Handler } from "../handler.ts";

export const createJobKey: Handler<"createJobKey"> = async (request, { store, isolatedNamespaces }, caller) => {
  const { id, attempt } = request;
  const made = await store.write((session) => create(session, { caller, request }, id, attempt, isolatedNamespaces));
  return { transaction_id: made.transaction, api_key_id: made.id, principal: made.principal, key: made.key };
};
