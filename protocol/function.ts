import { z } from "zod";
import { characters, items, list, map, text } from "./bounds.ts";

const arrowType = text(characters.path)
  .min(1)
  .describe("The Arrow type: a name such as `float64` or `list<utf8>`, or the JSON of a nested type.");

const Field = z
  .object({ name: text(characters.name).min(1), arrow_type: arrowType, nullable: z.boolean() })
  .meta({ id: "FunctionField" });
export type FunctionField = z.infer<typeof Field>;
const fields = list(Field, items.outputs);

/** The result of a Function: one value, or a row of named values. */
export const FunctionOutput = z
  .union([
    z.object({ kind: z.enum(["scalar"]), arrow_type: arrowType, nullable: z.boolean() }),
    z.object({ kind: z.enum(["named_struct"]), fields: fields.min(1) }),
  ])
  .meta({ id: "FunctionOutput" });

const Signature = z
  .object({
    inputs: fields.min(1).describe("The parameters."),
    output: FunctionOutput.describe("The result."),
    initialization: fields.optional().describe("The parameters of the constructor of a class."),
  })
  .meta({ id: "FunctionSignature" });

export const functionKinds = ["python_callable", "python_bundle"] as const;

/** The maximum number of rows whose errors a job records, and of those that a request lists. */
export const functionErrorsMax = 1_000;

/** The name of the result of a Function in one column. */
export const wholeResult = "$value";

export const namespacePath = list(text(characters.name), items.outputs).describe(
  "The parts of the identifier of the namespace; absent for the root.",
);

/** Together, the values of the secrets of a Function fit into the environment of a process. */
const secretsMax = 32;

const SecretBinding = z.object({
  kind: z.enum(["env"]),
  variable: text(characters.name)
    .regex(/^[A-Za-z_]\w*$/, "must be the name of an environment variable")
    .describe("The environment variable with the secret."),
  secret_ref: z
    .object({ name: text(characters.name).min(1), namespace_path: namespacePath.optional() })
    .describe("The name of the secret."),
});

/** A parameter of a Function with its column. */
export const FunctionInput = z.object({
  parameter: z.string().describe("The name of the parameter."),
  path: z.string(),
});
export type FunctionInput = z.infer<typeof FunctionInput>;

/** A column with the part of the result that it contains. */
export const FunctionResult = z.object({
  result: z.string().describe("The field of the result; `$value` is all of it."),
  column: z.string(),
});
export type FunctionResult = z.infer<typeof FunctionResult>;

/** A Function without its source, which the digest of the artifact identifies. */
export const FunctionDefinition = z.object({
  artifact: z.object({
    kind: z.enum(functionKinds).describe("One module, or the JSON of several ones."),
    digest: text(characters.name).describe("`sha256:` and the SHA-256 of the source in hexadecimal digits."),
    entrypoint: text(characters.name)
      .regex(/^[A-Za-z_]\w*$/, "must be the name of a function or class")
      .describe("The name of the function or class in the source."),
  }),
  signature: Signature.describe("The parameters and the result."),
  runtime: z.object({
    python_version: text(characters.name).describe("The minor version of Python, such as `3.12`."),
    packages: list(text(characters.path), items.outputs)
      .optional()
      .describe("The packages with their versions as pip names them, such as `numpy>=2`."),
    env: map(text(characters.path), items.outputs).optional().describe("The environment variables of the function."),
    gpu: z.boolean().optional().describe("Whether each worker of the function needs a GPU."),
  }),
  secret_bindings: list(SecretBinding, secretsMax)
    .optional()
    .describe("The secrets of the function, each with its environment variable."),
});
export type FunctionDefinition = z.infer<typeof FunctionDefinition>;
