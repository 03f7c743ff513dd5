import { managementContracts } from "@tiltyard/protocol";
import { prepareJob } from "../../domain/job.ts";
import { parametersOf } from "../../domain/parameters.ts";
import { requireTable } from "../../domain/require.ts";
import type { Handler } from "../handler.ts";

const contract = managementContracts.openJob;

/** Opens a job that no runner claims, because the client that opened it executes it. */
export const openJob: Handler<typeof contract> = async (request, { store }, caller) => {
  const job = prepareJob({
    contract,
    request,
    caller,
    objects: [request.id],
    properties: parametersOf({ ...request }),
  });
  await store.write(async (session) => {
    await requireTable(session, request.id);
    await job.open(session);
  });
  return { job_id: job.name };
};
