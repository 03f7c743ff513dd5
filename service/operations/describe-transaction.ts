import type { contracts } from "@tiltyard/protocol";
import { contextOf } from "../domain/audit.ts";
import { requireTransaction } from "../domain/require.ts";
import type { Handler } from "./handler.ts";

export const describeTransaction: Handler<typeof contracts.describeTransaction> = async (request, { store }) => {
  const transaction = await requireTransaction(store.read, request.id);
  return {
    status: transaction.status,
    context: contextOf(transaction),
    properties: { ...transaction.properties },
  };
};
