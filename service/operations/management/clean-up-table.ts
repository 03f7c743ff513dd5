import { managementContracts } from "@tiltyard/protocol";
import { requireMain } from "../../domain/branch.ts";
import { openTableJob } from "../../domain/open-job.ts";
import type { Handler } from "../handler.ts";

const contract = managementContracts.cleanUpTable;

export const cleanUpTable: Handler<typeof contract> = async (request, { store }, caller) => {
  requireMain(request);
  return { job_id: await openTableJob(store, { contract, request, caller }) };
};
