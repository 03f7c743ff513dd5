import { formatIdentifier } from "@tiltyard/protocol";
import type { Handler } from "../operations/handler.ts";
import { listJobs } from "../operations/management/list-jobs.ts";
import { remoteState } from "./job-state.ts";

export const listRemoteJobs: Handler<"listRemoteJobs"> = async (request, catalog, caller) => {
  const { jobs, page_token } = await listJobs(request, catalog, caller);
  return {
    jobs: jobs.map(({ job_id, objects, operation, status, created_at_millis }) => ({
      job_id,
      table: formatIdentifier((objects[0] ?? []).slice(request.id.length), request.delimiter),
      job_type: operation,
      state: remoteState[status],
      created_at_millis,
    })),
    ...(page_token !== undefined && { page_token }),
  };
};
