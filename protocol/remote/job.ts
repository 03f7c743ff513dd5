import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { type Access, anywhere, arrowStream, defineContract, onPath } from "../contract.ts";
import { AnsweredProperties, commonRequest, count, optional } from "../fields.ts";
import { parseIdentifier } from "../identifier.ts";
import { timeMillis } from "../management/fields.ts";
import type { Role } from "../roles.ts";

/** The states of a job in LanceDB's client. */
const remoteJobStates = ["IN_PROGRESS", "DONE", "FAILED", "CANCELLED"] as const;
export type RemoteJobState = (typeof remoteJobStates)[number];

const jobId = text(characters.path).min(1).describe("The id that the catalog returned to the request for the job.");

/** Returns the access rule for the job in the body. */
function onJob(role: Role) {
  return ({ job_id, delimiter }: { readonly job_id: string; readonly delimiter: string }): readonly Access[] => [
    { role, object: parseIdentifier(job_id, delimiter) },
  ];
}

/** The results of a successful job. The client requires the first four. */
const RefreshResult = z.object({
  rows_assigned: count,
  rows_failed: count,
  rows_remaining: count,
  source_version: count,
  published_version: count.optional(),
});

export const describeRemoteJob = defineContract({
  operationId: "DescribeRemoteJob",
  summary: "Describe a job in the format of LanceDB's remote client",
  path: "/v1/jobs/describe",
  body: z.object({ ...commonRequest, job_id: jobId }),
  response: z.object({
    job_id: z.string(),
    job_type: z.string(),
    job_state: z.enum(remoteJobStates),
    creation_ms: timeMillis,
    spec: AnsweredProperties,
    result: RefreshResult.optional(),
    failure: z.object({ phase: z.string(), message: z.string(), retryable: z.boolean() }).optional(),
  }),
  errors: [404, 409],
  access: anywhere("reader"),
  bodyAccess: onJob("reader"),
});

export const cancelRemoteJob = defineContract({
  operationId: "CancelRemoteJob",
  summary: "Cancel a job; an ended job stays unchanged",
  path: "/v1/jobs/cancel",
  body: z.object({ ...commonRequest, job_id: jobId }),
  response: z.object({ job_id: z.string(), job_state: z.enum(remoteJobStates) }),
  errors: [404, 409],
  access: anywhere("writer"),
  bodyAccess: onJob("writer"),
});

/** Defines a contract that only rejects requests with a recommendation: pausing or resuming a job. */
function defineRefused(operationId: string, summary: string, path: string) {
  return defineContract({
    operationId,
    summary,
    path,
    body: z.object({ ...commonRequest, job_id: jobId }),
    response: z.object({ status: z.string() }),
    errors: [404, 406, 409],
    access: anywhere("writer"),
    bodyAccess: onJob("writer"),
  });
}

export const pauseRemoteJob = defineRefused(
  "PauseRemoteJob",
  "Reject pausing a job, which is not supported",
  "/v1/jobs/pause",
);

export const resumeRemoteJob = defineRefused(
  "ResumeRemoteJob",
  "Reject resuming a job, which is not supported",
  "/v1/jobs/resume",
);

export const listRemoteJobs = defineContract({
  operationId: "ListRemoteJobs",
  summary: "List the jobs of the root or of the client's database, latest first",
  path: "/v1/jobs/list",
  body: z.object({ ...commonRequest, page_token: optional(text(characters.token)) }),
  response: z.object({
    jobs: z.array(
      z.object({
        job_id: z.string(),
        table: z.string(),
        job_type: z.string(),
        state: z.enum(remoteJobStates),
        created_at_millis: timeMillis,
      }),
    ),
    page_token: z.string().optional(),
  }),
  access: onPath("reader"),
});

export const queryRemoteJobEvents = defineContract({
  operationId: "QueryRemoteJobEvents",
  summary: "Return the events of a job as an Arrow stream",
  path: "/v1/jobs/query_events",
  body: z.object({
    ...commonRequest,
    job_id: jobId,
    limit: optional(count),
    filter: optional(text(characters.text)).describe("A column and its value, such as `state = 'claim'`."),
  }),
  response: arrowStream,
  errors: [404, 409],
  access: anywhere("reader"),
  bodyAccess: onJob("reader"),
});
