import { z } from "zod";
import { numbers } from "../bounds.ts";
import { count, word } from "../fields.ts";

/** The priorities of jobs, the most urgent first. */
export const jobPriorities = ["high", "normal", "low"] as const;
export type JobPriority = (typeof jobPriorities)[number];

/** The fields of all requests for jobs that runners execute. The catalog itself reads them. */
export const jobFields = {
  timeout_seconds: count
    .min(1)
    .max(numbers.jobTimeout)
    .optional()
    .describe("The maximum time in seconds that all attempts together run, after which the job fails."),
  priority: word(jobPriorities)
    .optional()
    .describe(
      "The order of the job among those of its principal: `high`, `normal` or `low`; `normal` when absent. It has no effect on others.",
    ),
};

/** The fields of a request that decide what happens to rows for which a function raises. They replace what the function declares. */
export const errorPolicyFields = {
  error_policy: word(["fail", "skip"])
    .optional()
    .describe(
      "`skip` leaves rows without a value for which the function raises, and records their errors; `fail` ends the job.",
    ),
  max_failed_rows: count.optional().describe("The maximum number of skipped rows, after which the job fails."),
  max_failed_fraction: z
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe("The maximum fraction of the processed rows that are skipped, after which the job fails."),
};

/** The maximum number of options, and the maximum numbers of characters of Geneva's own server. */
const optionMax = { count: 100, name: 64, value: 1024 } as const;
const optionName = /^[a-z][a-z0-9_]*$/;
/** The names that select what a job changes, that belong to the catalog or the process that runs it, or that have no effect. */
const reserved: readonly string[] = [
  ...["branch", "namespace", "version", "table", "table_name", "column", "columns", "col_name", "column_name"],
  ...["id", "identity", "job_id", "udf", "checkpoint", "checkpoint_store", "error_store", "job_tracker", "packager"],
  ...[
    "storage_options",
    "database",
    "delimiter",
    "options",
    "cluster_definition",
    "function_binding",
    "failed_rows_of",
  ],
];
const Option = z.union([z.string().max(optionMax.value), z.number(), z.boolean()], {
  error: `must be a text of at most ${optionMax.value} characters, a number or a boolean`,
});

/**
 * Accepts fields that the schema lacks as options of the job. Geneva's client sends each argument that its own schema
 * lacks as a further key, and its server passes these to the call of the same name.
 */
export function withJobOptions<Body extends z.ZodObject>(body: Body): Body {
  const declared = Object.keys(body.shape);
  const checked = body.catchall(Option.nullable()).superRefine((request, context) => {
    const names = Object.keys(request).filter((name) => !declared.includes(name));
    if (names.length > optionMax.count)
      context.addIssue({ code: "custom", message: `has more than ${optionMax.count} options` });
    for (const name of names) {
      const isName = optionName.test(name) && name.length <= optionMax.name && !reserved.includes(name);
      if (!isName) context.addIssue({ code: "custom", path: [name], message: "is not the name of an option of a job" });
    }
  });
  // Handlers read the declared fields only, so their type has no others.
  const open: z.ZodObject = checked.meta({
    maxProperties: declared.length + optionMax.count,
    propertyNames: {
      pattern: optionName.source,
      maxLength: optionMax.name,
      not: { enum: reserved.filter((name) => !declared.includes(name)) },
    },
  });
  return open as Body;
}
