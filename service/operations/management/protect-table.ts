import type { managementContracts } from "@tiltyard/protocol";
import { setProtected } from "../../domain/protection.ts";
import type { Handler } from "../handler.ts";

export const protectTable: Handler<typeof managementContracts.protectTable> = async (request, { store }, caller) => ({
  transaction_id: await store.write((session) => setProtected(session, { caller, request }, request.id, true)),
  protected: true,
});
