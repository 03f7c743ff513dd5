import type { OpenJob } from "../../runner/jobs.ts";

/** Of the job that `openJob` makes, without its namespace. */
export const jobUuid = "01a202d5-72e1-748d-90d9-eb704f5cc3f7";

/** A job that a runner takes up, on a table of a namespace. */
export function openJob(namespace: string): OpenJob {
  return {
    id: `${namespace}$${jobUuid}`,
    operation: "AlterTableBackfillColumns",
    objects: [[namespace, "films"]],
    principal: "ann",
    parameters: { column: "c" },
    attempt: 0,
    heartbeat: undefined,
    reason: undefined,
    platform: {},
  };
}
