import { setProtected } from "../../domain/protection.ts";
import type { Handler } from "../handler.ts";

export const unprotectTable: Handler<"unprotectTable"> = async (request, { store }, caller) => ({
  transaction_id: await store.write((session) => setProtected(session, { caller, request }, request.id, false)),
  protected: false,
});
