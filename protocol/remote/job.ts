import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { type Access, anywhere, arrowStream, defineContract, onPath } from "../contract.ts";
import { AnsweredProperties, commonRequest, count } from "../fields.ts";
import { parseIdentifier } from "../identifier.ts";
import { timeMillis } from "../management/fields.ts";
import type { Role } from "../roles.ts";
import { FunctionVersion } from "./function.ts";

/** The states of a job in LanceDB's client. */
const remoteJobStates = ["IN_PROGRESS", "PAUSED", "DONE", "FAILED", "CANCELLED"] as const;
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
    result: z.union([RefreshResult, FunctionVersion]).optional(),
    failure: z.object({ phase: z.string(), message: z.string(), retryable: z.boolean() }).optional(),
  }),
  errors: [404, 409],
  access: anywhere("reader"),
  bodyAccess: onJob("reader"),
});

/** Defines a contract that changes the job in the body. */
function defineChange<Response extends z.ZodType>(
  operationId: string,
  summary: string,
  path: string,
  response: Response,
) {
  return defineContract({
    operationId,
    summary,
    path,
    body: z.object({ ...commonRequest, job_id: jobId }),
    response,
    errors: [404, 409],
    access: anywhere("writer"),
    bodyAccess: onJob("writer"),
  });
}

export const cancelRemoteJob = defineChange(
  "CancelRemoteJob",
  "Cancel a job; an ended job stays unchanged",
  "/v1/jobs/cancel",
  z.object({ job_id: z.string(), job_state: z.enum(remoteJobStates) }),
);

export const pauseRemoteJob = defineChange(
  "PauseRemoteJob",
  "Pause a job; the client reports an empty answer as a job that was paused already",
  "/v1/jobs/pause",
  z.object({ paused: z.literal(true).optional().describe("Present if the request has paused the job.") }),
);

export const resumeRemoteJob = defineChange(
  "ResumeRemoteJob",
  "Resume a job; the client reports an empty answer as a job that was not paused",
  "/v1/jobs/resume",
  z.object({ resumed: z.literal(true).optional().describe("Present if the request has resumed the job.") }),
);

export const listRemoteJobs = defineContract({
  operationId: "ListRemoteJobs",
  summary: "List the jobs of the root or of the client's database, latest first",
  path: "/v1/jobs/list",
  body: z.object({
    ...commonRequest,
    page_token: text(characters.token).optional(),
    limit: z.int().min(1).optional(),
  }),
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
    limit: count.optional(),
    filter: text(characters.text).optional().describe("A column and its value, such as `state = 'claim'`."),
  }),
  response: arrowStream,
  errors: [404, 409],
  access: anywhere("reader"),
  bodyAccess: onJob("reader"),
});
