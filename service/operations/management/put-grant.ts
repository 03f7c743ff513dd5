import type { managementContracts } from "@tiltyard/protocol";
import { putGrant as put } from "../../domain/principals.ts";
import type { Handler } from "../handler.ts";

export const putGrant: Handler<typeof managementContracts.putGrant> = async (request, { store }, caller) => {
  const { id: namespace, principal, role } = request;
  return {
    transaction_id: await store.write((session) => put(session, { caller, request }, principal, { namespace, role })),
  };
};
