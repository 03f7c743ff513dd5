import type { managementContracts } from "@tiltyard/protocol";
import { revokeGrant as revoke } from "../../domain/principals.ts";
import type { Handler } from "../handler.ts";

export const revokeGrant: Handler<typeof managementContracts.revokeGrant> = async (request, { store }, caller) => ({
  transaction_id: await store.write((session) => revoke(session, { caller, request }, request.principal, request.id)),
});
