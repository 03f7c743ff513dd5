import type { StartableJob } from "../../runner/jobs.ts";

/** The id of the job that `openJob` creates, without its namespace. */
export const jobUuid = "01a202d5-72e1-748d-90d9-eb704f5cc3f7";

/** Returns a job on a table of a namespace, as a runner reads it. */
export function openJob(namespace: string): StartableJob {
  return {
    id: `${namespace}$${jobUuid}`,
    operation: "AlterTableBackfillColumns",
    objects: [[namespace, "films"]],
    principal: "ann",
    priority: "normal",
    parameters: { column: "c" },
    attempt: 0,
    interruptions: 0,
    started_at_millis: undefined,
    heartbeat: undefined,
    reason: undefined,
    platform: {},
  };
}
