import type { managementContracts } from "@tiltyard/protocol";
import { putPolicy } from "../../domain/policy.ts";
import type { Handler } from "../handler.ts";

export const putTablePolicy: Handler<typeof managementContracts.putTablePolicy> = async (
  request,
  { store },
  caller,
) => {
  const { id, auto_compact, auto_build_index, auto_clean_up } = request;
  const policy = { auto_compact, auto_build_index, auto_clean_up };
  return {
    transaction_id: await store.write((session) => putPolicy(session, { caller, request }, id, policy)),
  };
};
