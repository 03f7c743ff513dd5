import { createHash } from "node:crypto";
import {
  CatalogError,
  characters,
  type FunctionDefinition,
  type FunctionField,
  inDatabase,
  jsonOrUndefined,
  parseFunctionType,
  type RemoteContracts,
  type RequestOf,
} from "@tiltyard/protocol";
import { z } from "zod";
import { problemOfEntryPoint } from "./entry-point.ts";

type Request = RequestOf<RemoteContracts["createFunction"]>;

/** The module of a bundle that contains the entry point. */
const entryModule = "user_function.py";
const Bundle = z.object({ files: z.record(z.string(), z.string()) });
/** The minor versions of Python that jobs may run. */
const pythonVersion = /^3\.1[0-4]$/;
/**
 * A package with extras, versions and a marker, as in PEP 508. A URL, a path, an option of the installer, a variable or
 * another line is none: uv reads the packages as lines of a file.
 */
const requirement = /^[A-Za-z0-9][\w.-]*(?: *\[[\w ,.-]*\])?(?: *[<>=!~(;](?!.* -)[\w .,;<>=!~*+()'"-]*| *)$/;
/** uv reads the name of an archive as a path of the machine of the job. */
const archive = /^[\w.-]*\.(whl|zip|egg|tar|t?gz|tbz2?|bz2|txz|xz|tlz|lz|lzma|zst)(?![\w.-])/i;

/**
 * Parses the registration of a Function.
 *
 * @throws CatalogError Unsupported for environments that this catalog does not build; InvalidInput for a Function that no
 * job could run.
 */
export function parseRegistration(request: Request) {
  const { artifact, signature, runtime, secret_bindings = [] } = request;
  requireSupported(runtime);
  const { kind, digest, entrypoint, content } = artifact;
  requireTypes("signature.inputs", signature.inputs);
  requireTypes("signature.initialization", signature.initialization ?? []);
  requireTypes("signature.output", fieldsOfOutput(signature.output));
  if (!pythonVersion.test(runtime.python_version))
    throw invalid(
      `runtime.python_version: ${runtime.python_version} is not supported. It must be a version from 3.10 to 3.14`,
    );
  const packages = (runtime.environment.packages ?? []).toSorted();
  const other = packages.find((each) => !requirement.test(each) || archive.test(each));
  if (other !== undefined)
    throw invalid(
      `runtime.environment.packages: ${JSON.stringify(other)} must be a package with its versions, such as "numpy>=2"`,
    );
  const bytes = Buffer.from(content.data, "base64");
  if (digest !== sha256(bytes)) throw invalid(`artifact.digest: must be the SHA-256 of the source, ${sha256(bytes)}`);
  const source = kind === "python_bundle" ? entryOf(bytes) : decode(bytes);
  const parameters = signature.inputs.map(({ name }) => name);
  const problem = problemOfEntryPoint(source, entrypoint, parameters);
  if (problem !== undefined) throw invalid(`artifact.content: ${problem}`);
  const env = Object.entries(runtime.env ?? {}).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const variables = [...env.map(([name]) => name), ...secret_bindings.map(({ variable }) => variable)];
  const repeated = variables.find((name, index) => variables.indexOf(name) < index);
  if (repeated !== undefined) throw invalid(`secret_bindings: the variable ${repeated} has another value`);
  const secrets = secret_bindings.map(({ secret_ref: { name, namespace_path = [] }, ...binding }) => ({
    ...binding,
    secret_ref: { name, namespace_path: [...inDatabase(request, namespace_path)] },
  }));
  const definition = {
    artifact: { kind, digest, entrypoint },
    signature,
    runtime: {
      python_version: runtime.python_version,
      ...(packages.length > 0 && { packages }),
      env: Object.fromEntries(env),
      ...(runtime.gpu && { gpu: true }),
    },
    ...(secrets.length > 0 && { secret_bindings: secrets }),
  };
  // The schema orders the fields, so equal definitions have equal texts.
  const text = JSON.stringify(definition);
  if (text.length > characters.text)
    throw invalid(
      `signature, runtime: have ${text.length} characters with the rest of the definition, and at most ${characters.text} are allowed`,
    );
  return { definition, digest: sha256(text), content: content.data };
}

/** Returns the fields of a result. A single value has no name. */
export function fieldsOfOutput(output: FunctionDefinition["signature"]["output"]): readonly FunctionField[] {
  return output.kind === "scalar" ? [{ ...output, name: "" }] : output.fields;
}

function requireSupported({ kind, environment }: Request["runtime"]): void {
  if (environment.kind === "conda")
    throw unsupported("runtime.environment: this catalog creates no conda environments. Omit conda");
  // LanceDB's client sends the second kind for a GPU.
  if (!["python", "python_v2"].includes(kind) || environment.kind !== "pip")
    throw unsupported(`runtime: Functions run with Python and pip, not with ${kind} and ${environment.kind}`);
}

function requireTypes(path: string, fields: readonly FunctionField[]): void {
  for (const { name, arrow_type } of fields) {
    if (arrow_type === "blob_v2") throw unsupported(`${path}: this catalog supports no blobs (${name}). Use binary`);
    if (parseFunctionType(arrow_type) === undefined)
      throw invalid(
        `${path}: ${name} has the type ${JSON.stringify(arrow_type)}, which no value of a Function can have`,
      );
  }
  const names = fields.map(({ name }) => name);
  if (new Set(names).size < names.length) throw invalid(`${path}: has a name twice`);
}

/** Returns the module of a bundle with the entry point. */
function entryOf(bytes: Buffer): string {
  const entry = Bundle.safeParse(jsonOrUndefined(decode(bytes))).data?.files[entryModule];
  if (entry !== undefined) return entry;
  throw invalid(`artifact.content: must be JSON with files, one of which is ${entryModule}`);
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalid("artifact.content: the source is not UTF-8");
  }
}

function sha256(content: string | Buffer): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

export function invalid(message: string): CatalogError {
  return new CatalogError("InvalidInput", message);
}

function unsupported(message: string): CatalogError {
  return new CatalogError("Unsupported", message);
}
