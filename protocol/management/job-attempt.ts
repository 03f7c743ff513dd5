import { z } from "zod";
import { characters, map, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { AnsweredProperties, commonRequest, context, count } from "../fields.ts";
import { timeMillis } from "./fields.ts";
import { Job, JobSummary, jobErrors } from "./job.ts";

const countsMax = 100;
const platformMax = 20;

export const attempt = z.int().min(1).describe("The number of the attempt, which must be the latest one.");
export const claim = text(characters.name).min(1);
const ofProcess = claim.optional().describe("The claim of the process that runs the attempt; absent for the runner.");
const logTail = text(characters.path).optional().describe("The last lines of its output.");
const counts = map(count, countsMax).optional();
const response = z.object({ context, job: JobSummary }).meta({ id: "JobAttemptResponse" });

export const ClaimJobAttemptRequest = z
  .object({
    ...commonRequest,
    after: count.describe("The latest attempt that the caller knows; 0 for the first one."),
    platform: map(text(characters.name), platformMax).describe("The place where the attempt will run."),
  })
  .meta({ id: "ClaimJobAttemptRequest" });

export const claimJobAttempt = defineContract({
  operationId: "ClaimJobAttempt",
  summary: "Claim the next attempt of a job; only one of several runners succeeds",
  path: "/management/v1/job/{id}/attempt/claim",
  body: ClaimJobAttemptRequest,
  response,
  errors: jobErrors,
  access: onPath("writer", "runner"),
});

export const StartJobAttemptRequest = z
  .object({
    ...commonRequest,
    attempt,
    claim: claim.describe("A random text that identifies the process. No other process can start the attempt."),
  })
  .meta({ id: "StartJobAttemptRequest" });

export const startJobAttempt = defineContract({
  operationId: "StartJobAttempt",
  summary: "Start an attempt in one process, and set the job to Running; an ended job stays unchanged",
  path: "/management/v1/job/{id}/attempt/start",
  body: StartJobAttemptRequest,
  response: z.object({ context, job: Job }).meta({ id: "StartJobAttemptResponse" }),
  errors: jobErrors,
  idempotent: true,
  access: onPath("writer", "runner"),
});

export const HeartbeatJobAttemptRequest = z
  .object({
    ...commonRequest,
    attempt,
    claim: ofProcess,
    progress: counts.describe("All counts of the progress."),
    log_tail: logTail,
    reason: text(characters.path).optional().describe("The reason of a wait; empty when the attempt no longer waits."),
  })
  .meta({ id: "HeartbeatJobAttemptRequest" });

export const heartbeatJobAttempt = defineContract({
  operationId: "HeartbeatJobAttempt",
  summary:
    "Report the progress and the output of an attempt; after the start, only requests with the claim count as heartbeats; an ended job stays unchanged",
  path: "/management/v1/job/{id}/attempt/heartbeat",
  body: HeartbeatJobAttemptRequest,
  response,
  errors: jobErrors,
  idempotent: true,
  access: onPath("writer", "runner"),
});

export const releaseJobAttempt = defineContract({
  operationId: "ReleaseJobAttempt",
  summary: "Remove an attempt that has not started; it does not count as an attempt",
  path: "/management/v1/job/{id}/attempt/release",
  body: z.object({ ...commonRequest, attempt }).meta({ id: "ReleaseJobAttemptRequest" }),
  response,
  errors: jobErrors,
  access: onPath("writer", "runner"),
});

export const FinishJobAttemptRequest = z
  .object({
    ...commonRequest,
    attempt,
    claim: ofProcess,
    status: z
      .enum(["Succeeded", "Failed"])
      .optional()
      .describe("The status of the job; absent if another attempt may follow."),
    interrupted: z
      .boolean()
      .optional()
      .describe(
        "True if its runner stopped: the attempt does not count, and another runner may claim the next one at once.",
      ),
    reason: text(characters.path).optional().describe("Why the attempt failed."),
    progress: counts,
    result: counts.describe("The result of a successful job."),
    log_tail: logTail,
  })
  .meta({ id: "FinishJobAttemptRequest" });

export const finishJobAttempt = defineContract({
  operationId: "FinishJobAttempt",
  summary: "End an attempt, and the job if a status is specified; an ended job stays unchanged",
  path: "/management/v1/job/{id}/attempt/finish",
  body: FinishJobAttemptRequest,
  response,
  errors: jobErrors,
  idempotent: true,
  access: onPath("writer", "runner"),
});

const JobAttempt = z
  .object({
    number: z.int().min(1),
    claimed_at_millis: timeMillis,
    started_at_millis: timeMillis.optional(),
    ended_at_millis: timeMillis.optional(),
    reason: z.string().optional().describe("Why it ended."),
    platform: AnsweredProperties.describe("The place where it ran."),
    lines: z.array(z.string()).describe("The last lines of its output."),
    samples: z
      .array(
        z.object({
          at_millis: timeMillis.describe("The time of the sample in milliseconds since the epoch."),
          rows_committed: count.describe("The committed rows at that time."),
        }),
      )
      .describe("Its progress over time, at most 120 samples; the older ones have longer distances."),
  })
  .meta({ id: "JobAttempt" });

export const listJobAttempts = defineContract({
  operationId: "ListJobAttempts",
  summary: "List the attempts of a job with their output, the earliest first",
  methods: ["GET"],
  path: "/management/v1/job/{id}/attempt/list",
  response: z.object({ context, attempts: z.array(JobAttempt) }).meta({ id: "ListJobAttemptsResponse" }),
  errors: jobErrors,
  access: onPath("reader"),
});
