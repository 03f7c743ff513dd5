import { createHash } from "node:crypto";
import type { FunctionVersion } from "@tiltyard/protocol";
import { beginAttempt, finishAttempt } from "./attempts.ts";
import type { CallOptions, TestCatalog } from "./catalog.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface FunctionRegistration {
  readonly source?: string | Buffer;
  readonly artifact?: Fields;
  readonly signature?: Fields;
  readonly runtime?: Fields;
  readonly more?: Fields;
}

/** Returns the registration of a Function as LanceDB's client sends it. */
export function functionRegistration({ source, artifact, signature, runtime, more }: FunctionRegistration = {}) {
  const bytes = Buffer.from(source ?? "def f(value: float) -> float:\n    return value * 2\n");
  return {
    artifact: {
      kind: "python_callable",
      digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}`,
      entrypoint: "f",
      content: { encoding: "base64", data: bytes.toString("base64") },
      adapter: { kind: "scalar_to_arrow_batch", version: 1 },
      ...artifact,
    },
    signature: {
      inputs: [{ name: "value", arrow_type: "float64", nullable: false }],
      output: { kind: "scalar", arrow_type: "float64", nullable: false },
      ...signature,
    },
    runtime: { kind: "python", python_version: "3.12", environment: { kind: "pip" }, ...runtime },
    ...more,
  };
}

/** Registers a Function and returns its version. A job that would install packages succeeds without a runner. */
export async function registerFunction(
  catalog: Pick<TestCatalog, "call">,
  id: readonly string[],
  definition?: FunctionRegistration,
  options: CallOptions = {},
): Promise<FunctionVersion> {
  const request = { id, ...functionRegistration(definition) };
  const { job_id } = (await catalog.call("createFunction", request, options)).body;
  if ((await catalog.call("describeRemoteJob", { job_id }, options)).body.job_state === "IN_PROGRESS") {
    await beginAttempt(catalog, job_id);
    await finishAttempt(catalog, job_id, { status: "Succeeded" });
  }
  const { result } = (await catalog.call("describeRemoteJob", { job_id }, options)).body;
  if (result === undefined || !("object_id" in result)) throw new Error(`${job_id} has no Function`);
  return result;
}

/** Returns a request for columns as LanceDB's client sends it. @param outputs The column of each result. */
export function functionColumns(
  version: FunctionVersion,
  inputs: Readonly<Record<string, string>>,
  outputs: Readonly<Record<string, string>>,
  initialization: Fields = {},
) {
  const { name, namespace_path, object_id, version: number } = version;
  return {
    new_columns: Object.values(outputs).map((column) => ({ name: column, all_null: true })),
    function: {
      application: {
        function: { name, namespace_path, object_id, version: number },
        inputs: Object.entries(inputs).map(([parameter, path]) => ({ parameter, kind: "column", value: { path } })),
        initialization,
      },
      outputs: Object.entries(outputs).map(([result_field, output_name]) => ({ result_field, output_name })),
    },
  };
}
