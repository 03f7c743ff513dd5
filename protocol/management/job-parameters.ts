import { z } from "zod";
import { count } from "../fields.ts";
import { refreshFields } from "../operations/materialized-view.ts";
import { backfillFields } from "../operations/table.ts";
import { buildIndexFields, cleanUpFields, compactFields } from "./maintenance.ts";

/** The parameters that the catalog derives from a request. */
export const derivedParameters = {
  cluster_definition: z.string().describe("The Ray cluster of that name in Geneva's definitions, as JSON."),
  function_binding: z.string().describe("The application of a Function that the job evaluates."),
  failed_rows_of: z.string().describe("The job whose failed rows the job computes."),
};

/** The parameters of a job that installs the packages of a Function. */
const bakeParameters = {
  version: count.describe("The version of the Function."),
  python_version: z.string().describe("The minor version of Python."),
  packages: z.array(z.string()).describe("The packages with their versions."),
};

/**
 * The parameters of a job of any kind: the fields of the request that opened it, and those that the catalog adds. The definition of a
 * view is in entries with the prefix `materialized_view.`.
 */
export const JobParameters = z
  .looseObject({
    ...backfillFields,
    ...refreshFields,
    ...compactFields,
    ...cleanUpFields,
    ...buildIndexFields,
    ...bakeParameters,
    ...derivedParameters,
    options: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
      .describe("The fields of the request that its schema lacks, for the call of Geneva with the same name."),
  })
  .partial()
  .meta({ id: "JobParameters" });
export type JobParameters = z.infer<typeof JobParameters>;
