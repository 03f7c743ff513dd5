import { z } from "zod";
import { characters, list, text } from "../bounds.ts";
import { defineContract, onPath } from "../contract.ts";
import { commonRequest, context, count } from "../fields.ts";
import { FunctionDefinition, FunctionInput, FunctionOutput, FunctionResult, functionKinds } from "../function.ts";
import { jobErrors } from "./job.ts";
import { claim as anyClaim, attempt } from "./job-attempt.ts";

const recordsMax = 1_000;
const messageMax = 4_000;

const fragmentId = count.describe("The id of the fragment.");

const Fragment = z
  .object({
    fragment_id: fragmentId,
    signature: text(characters.name)
      .min(1)
      .describe("A digest of the data files of the inputs and the outputs, which the job computes."),
    rows: count.describe("The number of computed rows from the first one on, including deleted and failed rows."),
  })
  .meta({ id: "FunctionFragment", description: "The computed rows of a fragment." });

const JobFunction = z
  .object({
    name: z.string(),
    version: z.int().min(1).describe("The version of the Function."),
    binding: z.string().describe("The id in the metadata of the output columns."),
    kind: z.enum(functionKinds),
    entrypoint: z.string().describe("The name of the function or class in the source."),
    content: z.string().describe("The module, or the JSON of a bundle of modules, in Base64."),
    python_version: z.string().describe("The minor version of Python."),
    packages: z.array(z.string()).describe("The requirements of pip; those of the runner if there are none."),
    env: z.record(z.string(), z.string()).describe("The environment variables of the function."),
    gpu: z.boolean().describe("Whether each worker needs a GPU."),
    secrets: z.array(z.string()).describe("The environment variables with secrets, which ReadJobSecrets returns."),
    inputs: z.array(FunctionInput).describe("The path of the column of each parameter."),
    input_types: FunctionDefinition.shape.signature.shape.inputs,
    output: FunctionOutput.describe("The result."),
    outputs: z.array(FunctionResult),
    initialization: z.record(z.string(), z.unknown()).describe("The arguments of the constructor of a class."),
    fragments: z.array(Fragment).describe("The rows that are computed already."),
  })
  .meta({ id: "JobFunction" });

export const describeJobFunction = defineContract({
  operationId: "DescribeJobFunction",
  summary: "Describe the Function that a job evaluates, with its source and the rows that are already computed",
  methods: ["GET"],
  path: "/management/v1/job/{id}/function/describe",
  response: z
    .object({ context, function: JobFunction.describe("The Function.") })
    .meta({ id: "DescribeJobFunctionResponse" }),
  errors: jobErrors,
  access: onPath("writer"),
});

const claim = anyClaim.describe("The claim of the process that runs the attempt.");

export const readJobSecrets = defineContract({
  operationId: "ReadJobSecrets",
  summary: "Read the secrets of the Function that a job evaluates, with the key of its latest attempt",
  path: "/management/v1/job/{id}/function/secrets",
  body: z.object({ ...commonRequest, attempt, claim }).meta({ id: "ReadJobSecretsRequest" }),
  response: z
    .object({
      context,
      secrets: z.record(z.string(), z.string()).describe("The value of each environment variable."),
    })
    .meta({ id: "ReadJobSecretsResponse" }),
  errors: [...jobErrors, 406],
  idempotent: true,
  access: onPath("writer"),
});

const RowError = z
  .object({
    fragment_id: fragmentId,
    row_offset: count.optional().describe("The position of the row in its fragment."),
    error_type: text(characters.name).min(1).describe("The class of the exception."),
    error_message: text(messageMax).describe("The message of the exception."),
  })
  .meta({ id: "FunctionRowError" });

const Failures = z
  .object({ fragment_id: fragmentId, rows: count.describe("The number of failed rows until now.") })
  .meta({ id: "FunctionFailures" });

export const RecordJobFunctionRequest = z
  .object({
    ...commonRequest,
    attempt,
    claim,
    version: count.describe("The version of the table that contains the values."),
    fragments: list(Fragment, recordsMax).describe("The fragments whose records are replaced."),
    removed: list(count, recordsMax).optional().describe("The fragments that no longer exist."),
    errors: list(RowError, recordsMax).optional().describe("Some of the rows that the Function could not compute."),
    failed: list(Failures, recordsMax).optional().describe("The fragments whose numbers of failed rows are replaced."),
  })
  .meta({ id: "RecordJobFunctionRequest" });

export const recordJobFunction = defineContract({
  operationId: "RecordJobFunction",
  summary: "Record the rows of fragments that an attempt has computed, and its failed rows",
  path: "/management/v1/job/{id}/function/record",
  body: RecordJobFunctionRequest,
  response: z.object({ context }).meta({ id: "RecordJobFunctionResponse" }),
  errors: jobErrors,
  bodySize: "large",
  idempotent: true,
  access: onPath("writer"),
});
