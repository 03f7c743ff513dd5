import { requireTransaction } from "../domain/require.ts";
import { toAnswer } from "../domain/transaction.ts";
import type { Handler } from "./handler.ts";

/** Describes a transaction of the protocol, which is an audit record or a job. */
export const describeTransaction: Handler<"describeTransaction"> = async (request, { store }) =>
  toAnswer(await requireTransaction(store.read, request.id));
