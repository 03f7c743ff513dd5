import type { contracts } from "@tiltyard/protocol";
import { contextOf } from "../domain/audit.ts";
import { requireTransaction } from "../domain/require.ts";
import { applyActions } from "../domain/transaction.ts";
import { updateTransaction } from "../store/transactions.ts";
import type { Handler } from "./handler.ts";

export const alterTransaction: Handler<typeof contracts.alterTransaction> = async (request, { store }) => {
  const transaction = await store.write(async (session) => {
    const present = await requireTransaction(session, request.id);
    const altered = { ...present, ...applyActions(present, request.actions), updatedAtMillis: Date.now() };
    await updateTransaction(session, altered);
    return altered;
  });
  return {
    status: transaction.status,
    context: contextOf(transaction),
    properties: { ...transaction.properties },
  };
};
