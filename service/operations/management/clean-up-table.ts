import { managementContracts } from "@tiltyard/protocol";
import { requireMain } from "../../domain/branch.ts";
import { openTableJob } from "../../domain/open-job.ts";
import { resolveNames } from "../../rows/definitions.ts";
import type { Handler } from "../handler.ts";

const contract = managementContracts.cleanUpTable;

export const cleanUpTable: Handler<"cleanUpTable"> = async (request, catalog, caller) => {
  requireMain(request);
  const named = await resolveNames(catalog, { ...request, caller });
  return { job_id: await openTableJob(catalog.store, { contract, request: { ...request, ...named }, caller }) };
};
