import { z } from "zod";
import { characters, items, list, map, text } from "../bounds.ts";
import { defineContract, onNamespace, onPath } from "../contract.ts";
import { branch, commonRequest, context, count, fieldPath, pageQuery, queryBoolean } from "../fields.ts";
import { FunctionDefinition, FunctionOutput, functionErrorsMax, namespacePath } from "../function.ts";
import { timeMillis } from "../management/fields.ts";

/** The maximum size of the source of a Function in bytes. */
const functionSourceMax = 1024 * 1024;

/** Nine digits fit into the integers of every database. */
const versionText = text(characters.name).regex(
  /^[1-9]\d{0,8}$/,
  "must be a positive integer of at most 9 digits as text",
);
const { artifact, signature, runtime, secret_bindings } = FunctionDefinition.shape;
const { packages } = runtime.shape;

const objectId = text(characters.name).describe("The id of the version of the Function.");

/** A version of a Function. lancedb 0.40 reads `created_at`, 0.41 `created_at_millis`. */
export const FunctionVersion = z
  .object({
    name: z.string(),
    namespace_path: namespacePath.optional(),
    object_id: objectId,
    location: z.string(),
    version: z.string(),
    image: z.object({
      manifest_digest: z.string().describe("The digest of the registration."),
      descriptor: z.record(z.string(), z.string()).describe("The version of Python."),
      source: z.boolean().describe("True, because the catalog has the source."),
    }),
    signature,
    secret_bindings,
    created_at: z.string().describe("The time of the registration."),
    created_at_millis: timeMillis,
    metadata: z.record(z.string(), z.string()),
    disabled: z
      .boolean()
      .describe("True until the packages were installed once. Columns cannot use the version before."),
  })
  .meta({ id: "FunctionVersion" });
export type FunctionVersion = z.infer<typeof FunctionVersion>;

const names = list(text(characters.name), items.outputs);
const source = z
  .base64()
  .max(Math.ceil(functionSourceMax / 3) * 4, "the source may have at most 1 MiB")
  .describe("The source in Base64.");

export const createFunction = defineContract({
  operationId: "CreateFunction",
  summary: "Register a Python function; an equal registration returns the same version",
  path: "/v1/function/{id}/create",
  body: z.object({
    ...commonRequest,
    artifact: artifact
      .extend({
        content: z
          .object({ encoding: z.enum(["base64"]).describe("The encoding."), data: source })
          .describe("The source."),
        adapter: z
          .object({ kind: z.enum(["scalar_to_arrow_batch"]), version: z.literal(1) })
          .describe("The conversion between rows and batches."),
      })
      .describe("The source and its entry point."),
    signature,
    runtime: runtime
      .omit({ packages: true })
      .extend({
        kind: text(characters.name),
        environment: z
          .object({
            kind: text(characters.name),
            packages: packages.describe(
              "The requirements of pip, such as `numpy>=2`; without any, those of the runner.",
            ),
            channels: names.optional().describe("The channels of conda."),
          })
          .describe("The packages of the function."),
      })
      .describe("The environment of the function."),
    secret_bindings,
  }),
  response: z.object({
    job_id: z.string().describe("The name of the job that installs the packages; without packages it is done at once."),
  }),
  errors: [404, 406, 429],
  bodySize: "large",
  idempotent: true,
  access: onNamespace("writer"),
});

export const describeFunction = defineContract({
  operationId: "DescribeFunction",
  summary: "Describe a version of a Function",
  path: "/v1/function/{id}/describe",
  body: z.object({ ...commonRequest, version: versionText }),
  response: FunctionVersion,
  errors: [404],
  access: onNamespace("reader"),
});

export const dropFunction = defineContract({
  operationId: "DropFunction",
  summary: "Drop a version of a Function that no column uses",
  path: "/v1/function/{id}/drop",
  body: z.object({ ...commonRequest, version: versionText }),
  response: z.object({ dropped: z.boolean().describe("False if the version did not exist.") }),
  access: onNamespace("writer"),
});

export const listFunctions = defineContract({
  operationId: "ListFunctions",
  summary: "List the versions of the Functions of a namespace by name",
  methods: ["GET"],
  path: "/v1/namespace/{id}/function/list",
  query: z.object({
    ...pageQuery,
    include_definition: queryBoolean.optional().describe("Has no effect: definitions are included."),
  }),
  response: z.object({
    functions: z
      .array(z.object({ definition: FunctionVersion.describe("The version.") }))
      .describe("The versions in the order of their names."),
    page_token: z.string().optional(),
  }),
  errors: [404],
  access: onPath("reader"),
});

const unread = z.unknown().optional().describe("Not read: the catalog derives it from the function and the table.");

/** The columns that a Function computes, in a request to add them. */
export const FunctionColumns = z.object({
  application: z
    .object({
      function: z
        .object({
          name: text(characters.name).min(1),
          namespace_path: namespacePath.optional(),
          object_id: objectId,
          location: text(characters.path).optional(),
          version: versionText,
          manifest_digest: text(characters.name).optional().describe("The digest of the registration."),
        })
        .describe("The version of the Function."),
      inputs: list(
        z.object({
          parameter: text(characters.name).describe("The name of the parameter."),
          kind: text(characters.name),
          value: z.object({ path: fieldPath }).describe("The path of the column."),
        }),
        items.outputs,
      ).describe("A column for each parameter."),
      output: FunctionOutput.optional().describe("Not read: the function has its own."),
      columns: map(text(characters.path), items.outputs).optional().describe("Not read: `outputs` has the names."),
      initialization: map(z.unknown(), items.outputs)
        .optional()
        .describe("The arguments of the constructor of a class."),
    })
    .describe("The Function with its arguments."),
  binding_metadata_version: count.optional().describe("Not read."),
  input_bindings: unread,
  input_schema: unread,
  output_schema: unread,
  outputs: list(
    z.object({
      result_field: text(characters.name).describe("The field of the result; `$value` is all of it."),
      output_name: text(characters.path).min(1).describe("The name of the column."),
      output_ordinal: count.optional().describe("Not read: the position of the column."),
    }),
    items.outputs,
  )
    .min(1)
    .describe("The columns of the result."),
});
export type FunctionColumns = z.infer<typeof FunctionColumns>;

const ErrorRecord = z.object({
  job_id: z.string(),
  fragment_id: count,
  row_offset: count.optional().describe("The position of the row in its fragment, if it is known."),
  column: z.string().describe("A column of the Function."),
  function: z.string().describe("The name of the Function."),
  function_version: z.string().describe("The version of the Function."),
  table_version: count.describe("The version of the table that the job wrote."),
  error_type: z.string().describe("The class of the exception."),
  error_message: z.string().describe("The message of the exception."),
  created_at_millis: timeMillis,
});

export const listFunctionErrors = defineContract({
  operationId: "ListFunctionErrors",
  summary: "List the rows of a table that Functions could not compute, those of the newest job first",
  path: "/v1/table/{id}/errors",
  body: z.object({
    ...commonRequest,
    branch,
    job_id: text(characters.path).optional(),
    column: fieldPath.optional(),
    limit: count.optional().describe(`The maximum number of records, at most ${functionErrorsMax}.`),
  }),
  response: z.object({
    context,
    records: z.array(ErrorRecord).describe("The failed rows."),
    fragments: z
      .array(
        z.object({
          job_id: z.string(),
          fragment_id: count,
          rows_skipped: count.describe("The number of failed rows."),
          rows_recorded: count.describe("The number of those with a record."),
        }),
      )
      .describe("The fragments with more failed rows than records."),
    truncated: z.boolean().describe("True if failed rows are missing here."),
  }),
  errors: [404],
  access: onPath("reader"),
});
