import { z } from "zod";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, context, count } from "../fields.ts";
import { Schedule } from "../schedule.ts";
import { timeMillis } from "./fields.ts";
import { buildIndexFields, cleanUpFields, compactFields } from "./maintenance.ts";

/** Lance's own default of a compaction. */
export const defaultRowsPerFragment = 1024 * 1024;

const schedule = Schedule.optional().describe(
  "The times at which a due job is opened. Without them it is opened soon after the commit.",
);

const Compaction = z
  .strictObject({
    small_fragments: count
      .min(2)
      .describe("The number of fragments with fewer rows than `target_rows_per_fragment` that opens a job."),
    ...compactFields,
    schedule,
  })
  .meta({ id: "CompactionPolicy" });

const Index = z
  .strictObject({
    new_fragments: count
      .min(1)
      .describe("The number of new fragments since the latest job of this policy that opens a job."),
    ...buildIndexFields,
    schedule,
  })
  .meta({ id: "IndexPolicy" });

const CleanUp = z
  .strictObject({
    versions: count.min(1).describe("The number of new versions of main since the latest clean-up that opens a job."),
    ...cleanUpFields,
    schedule,
  })
  .meta({ id: "CleanUpPolicy" });

const Refresh = z
  .strictObject({ schedule: Schedule.describe("The times at which a due refresh is opened.") })
  .meta({ id: "RefreshPolicy" });

/**
 * The conditions under which the catalog opens maintenance jobs for a table, with the fields of the requests that open
 * them, and the times of the automatic refreshes.
 */
export const TablePolicy = {
  auto_compact: Compaction.optional(),
  auto_build_index: z
    .array(Index)
    .max(100)
    .refine((indices) => new Set(indices.map(({ column }) => column)).size === indices.length, {
      error: "must have one policy for each column",
    })
    .optional(),
  auto_clean_up: CleanUp.optional(),
  auto_refresh: Refresh.optional().describe(
    "The times of automatic refreshes of the table's columns, and of the table itself if it is a view.",
  ),
};

const part = {
  policy: z.enum(["auto_compact", "auto_build_index", "auto_clean_up", "auto_refresh"]),
  column: z.string().optional().describe("The column of auto_build_index."),
};

const Problem = z
  .object({
    ...part,
    problem: z.string().describe("The reason why no job can be opened, such as a column that no longer exists."),
  })
  .meta({ id: "PolicyProblem" });

const Scheduled = z
  .object({ ...part, next_at_millis: timeMillis.describe("The next time of the schedule.") })
  .meta({ id: "ScheduledPolicy" });

export const describeTablePolicy = defineContract({
  operationId: "DescribeTablePolicy",
  summary: "Describe the policy of a table, with its next times and the reasons why jobs cannot be opened",
  methods: ["GET"],
  path: "/management/v1/table/{id}/policy/describe",
  response: z
    .object({
      context,
      policy: z.object(TablePolicy),
      problems: z.array(Problem),
      scheduled: z.array(Scheduled).describe("The parts with a schedule."),
    })
    .meta({ id: "DescribeTablePolicyResponse" }),
  errors: [404],
  access: onPath("reader"),
});

export const putTablePolicy = defineContract({
  operationId: "PutTablePolicy",
  summary: "Replace the policy by which the catalog opens maintenance jobs for a table",
  path: "/management/v1/table/{id}/policy/put",
  body: z.object({ ...commonRequest, ...TablePolicy }).meta({ id: "PutTablePolicyRequest" }),
  response: z.object({ context, transaction_id: z.string() }).meta({ id: "PutTablePolicyResponse" }),
  errors: [404],
  access: onPath("writer"),
});
