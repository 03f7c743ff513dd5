import { revokeApiKey as revoke } from "../../domain/principals.ts";
import type { Handler } from "../handler.ts";

export const revokeApiKey: Handler<"revokeApiKey"> = async (request, { store }, caller) => ({
  transaction_id: await store.write((session) => revoke(session, { caller, request }, request.api_key_id)),
});
