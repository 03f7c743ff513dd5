import { managementContracts } from "@tiltyard/protocol";
import { prepareJob } from "../../domain/job.ts";
import { parametersOf } from "../../domain/parameters.ts";
import type { Handler } from "../handler.ts";

const contract = managementContracts.openJob;

/** Opens a job that no runner claims, because the client that opened it executes it. */
export const openJob: Handler<"openJob"> = async (request, { store }, caller) => {
  const job = prepareJob({ contract, request, caller, table: request.id, parameters: parametersOf({ ...request }) });
  await store.write((session) => job.open(session));
  return { job_id: job.name };
};
