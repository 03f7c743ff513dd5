import { z } from "zod";
import { characters, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import {
  AnsweredProperties,
  commonRequest,
  context,
  count,
  id,
  pageQuery,
  pageResponse,
  queryBoolean,
} from "../fields.ts";
import { jobPriorities } from "../operations/job-options.ts";
import { transactionStatuses } from "../transaction-status.ts";
import { PrincipalName, statusesInQuery, timeMillis } from "./fields.ts";
import { JobParameters } from "./job-parameters.ts";
import { shown } from "./row.ts";

const jobId = z.string().describe("The id that the catalog returned to the request for the job.");

/** The number of rows and other counters of a job. */
export const JobCounts = z.record(z.string(), count).meta({
  id: "JobCounts",
  description:
    "Counts by name, such as `rows_committed`, `rows_total`, `rows_per_second`, `compute_millis` and `published_version`.",
});

/** A job in lists, without the parameters, which may be long. */
export const JobSummary = z
  .object({
    job_id: jobId,
    status: z.enum(transactionStatuses),
    operation: z.string().describe("The id of the operation that opened the job."),
    objects: z.array(id).describe("The identifiers of the objects that the job changes, the main one first."),
    principal: z.string().describe("The principal that opened the job."),
    request_id: z.string(),
    column: z.string().optional().describe("The column that the job fills or indexes."),
    progress: JobCounts.describe("The progress of the latest attempt, without unknown counts."),
    result: JobCounts.describe("The result of a successful job."),
    priority: z.enum(jobPriorities).describe("The order of the job among those of its principal."),
    queue_position: z
      .int()
      .min(1)
      .optional()
      .describe("The expected position of a job that waits for a runner among all such jobs; 1 is the next one."),
    attempt: count.describe("The number of the latest attempt; 0 before the first."),
    interruptions: count.describe(
      "The number of attempts that a pause or the stop of a runner interrupted. They do not count.",
    ),
    paused_at_millis: timeMillis.optional().describe("The time since which an open job is paused."),
    started_at_millis: timeMillis.optional().describe("The start of the latest attempt."),
    heartbeat: z.string().optional().describe("The time of the latest heartbeat of the latest attempt."),
    stalled_since_millis: timeMillis
      .optional()
      .describe("The time of the latest progress of a running job, if it is longer ago than TILTYARD_STALLED_AFTER."),
    reason: z
      .string()
      .optional()
      .describe("Why the job failed or was canceled, what an open job waits for, or why its latest attempt failed."),
    platform: AnsweredProperties.describe("The place where the latest attempt runs."),
    created_at_millis: timeMillis,
    updated_at_millis: timeMillis,
    ended_at_millis: timeMillis.optional(),
  })
  .meta({ id: "JobSummary" });
export type JobSummary = z.infer<typeof JobSummary>;

/** A job in responses of management. */
export const Job = JobSummary.extend({
  parameters: JobParameters.describe("The fields of the request that opened the job. They never change."),
}).meta({ id: "Job" });
export type Job = z.infer<typeof Job>;

export const openJob = defineContract({
  operationId: "OpenJob",
  summary: "Open a job on a table that the caller itself runs and updates with AlterTransaction",
  path: "/management/v1/table/{id}/job/open",
  body: z
    .object({
      ...commonRequest,
      column: text(characters.path).min(1).optional().describe("The column that the job fills."),
    })
    .meta({ id: "OpenJobRequest" }),
  response: z.object({ context, job_id: jobId }).meta({ id: "OpenJobResponse" }),
  status: 201,
  errors: [404, 429],
  access: onPath("writer"),
});

export const listJobs = defineContract({
  operationId: "ListJobs",
  summary: "List the jobs of a namespace and its descendants without their parameters, latest first",
  methods: ["GET"],
  path: "/management/v1/namespace/{id}/job/list",
  query: z.object({
    ...pageQuery,
    table: text(characters.path).optional().describe("Only jobs on the table with this identifier."),
    principal: PrincipalName.optional(),
    status: statusesInQuery.optional(),
    ascending: queryBoolean.optional().describe("Sorts the oldest first."),
  }),
  response: z.object({ context, jobs: z.array(JobSummary), ...pageResponse }).meta({ id: "ListJobsResponse" }),
  access: onPath("reader", "runner"),
});

export const listJobDefinitions = defineContract({
  operationId: "ListJobDefinitions",
  summary: "List the names that requests for jobs can use for manifests and for Ray clusters",
  methods: ["GET"],
  path: "/management/v1/namespace/{id}/job_definition/list",
  response: z
    .object({
      context,
      manifests: z.array(z.string()).describe("Geneva's definitions of manifests that the caller may read."),
      clusters: z.array(z.string()).describe("Geneva's definitions of clusters that the caller may read."),
      runner_clusters: z.array(z.string()).describe("The Ray clusters in the runner's file that the catalog knows."),
    })
    .meta({ id: "ListJobDefinitionsResponse" }),
  access: onPath("reader"),
  onRows: true,
});

/** The error statuses of operations on one job; 409 means that the id belongs to an audit record. */
export const jobErrors = [404, 409] as const;

export const describeJob = defineContract({
  operationId: "DescribeJob",
  summary: "Describe a job with its parameters, its progress and its platform",
  methods: ["GET"],
  path: "/management/v1/job/{id}/describe",
  response: z.object({ context, job: Job }).meta({ id: "DescribeJobResponse" }),
  errors: jobErrors,
  access: onPath("reader", "runner"),
});

export const createJobKey = defineContract({
  operationId: "CreateJobKey",
  summary:
    "Create the API key of an attempt, limited to the objects of the job; it is invalid after the end of the job or the begin of another attempt",
  path: "/management/v1/job/{id}/key/create",
  body: z
    .object({ ...commonRequest, attempt: z.int().min(1).describe("The job's latest attempt.") })
    .meta({ id: "CreateJobKeyRequest" }),
  response: z
    .object({ context, transaction_id: z.string(), api_key_id: z.string(), principal: z.string(), key: z.string() })
    .meta({ id: "CreateJobKeyResponse" }),
  status: 201,
  errors: jobErrors,
  access: onPath("runner"),
});

export const cancelJob = defineContract({
  operationId: "CancelJob",
  summary: "Cancel a job that has not ended; its attempt stops within seconds",
  path: "/management/v1/job/{id}/cancel",
  response: z.object({ context, job: Job }).meta({ id: "CancelJobResponse" }),
  errors: jobErrors,
  access: onPath("writer"),
});

export const pauseJob = defineContract({
  operationId: "PauseJob",
  summary: "Pause a job; its attempt stops within seconds and does not count, and its committed rows stay",
  path: "/management/v1/job/{id}/pause",
  response: z.object({ context, job: Job }).meta({ id: "PauseJobResponse" }),
  errors: jobErrors,
  idempotent: true,
  access: onPath("writer"),
});

export const resumeJob = defineContract({
  operationId: "ResumeJob",
  summary: "Resume a paused job; its next attempt fills the rows that still have no value",
  path: "/management/v1/job/{id}/resume",
  response: z.object({ context, job: Job }).meta({ id: "ResumeJobResponse" }),
  errors: jobErrors,
  idempotent: true,
  access: onPath("writer"),
});

export const retryJob = defineContract({
  operationId: "RetryJob",
  summary: "Open a failed or canceled job again with the same parameters; it fills the rows that still have no value",
  path: "/management/v1/job/{id}/retry",
  body: z
    .object({
      ...commonRequest,
      failed_rows: z
        .boolean()
        .optional()
        .describe(
          "Computes only the rows for which the job recorded an error. The job may have succeeded, and must be a backfill of a function of Geneva.",
        ),
    })
    .meta({ id: "RetryJobRequest" }),
  response: z.object({ context, job_id: jobId }).meta({ id: "RetryJobResponse" }),
  status: 201,
  errors: [...jobErrors, 429],
  access: onPath("writer"),
});

export const describeJobLog = defineContract({
  operationId: "DescribeJobLog",
  summary: "Return the last lines of a job's output",
  methods: ["GET"],
  path: "/management/v1/job/{id}/log",
  response: z.object({ context, lines: z.array(z.string()) }).meta({ id: "DescribeJobLogResponse" }),
  errors: jobErrors,
  access: onPath("reader"),
});

const JobFailure = z
  .object({
    type: z.string().describe("The class of the exception."),
    message: z.string().describe(`The message, truncated to ${shown.characters} characters.`),
    trace: z
      .string()
      .optional()
      .describe(`The last ${shown.traceCharacters} characters of the traceback, if Geneva recorded one.`),
    column: z.string(),
    fragment_id: z.string().optional(),
    row_address: z.string().optional().describe("The address of the row, if Geneva knows it."),
    timestamp: z.string(),
  })
  .meta({
    id: "JobFailure",
    description: "An error of a batch or a row that Geneva, or a refresh of a Function, recorded.",
  });

export const listJobErrors = defineContract({
  operationId: "ListJobErrors",
  summary: `List the first ${shown.rows} errors of batches or rows of a job`,
  methods: ["GET"],
  path: "/management/v1/job/{id}/error/list",
  response: z
    .object({
      context,
      errors: z.array(JobFailure),
      rows_failed: count.optional().describe("The number of all failed rows of a Function."),
    })
    .meta({ id: "ListJobErrorsResponse" }),
  errors: jobErrors,
  access: onPath("reader"),
  onRows: true,
});
