import { z } from "zod";
import { NeedsError } from "./platform.ts";

const texts = z.array(z.string()).nullish();
const path = z.string().nullish();

/** The fields of a `manifest`, which is Geneva's JSON, that determine the environment of code. */
const Manifest = z.looseObject({
  pip: texts,
  pip_extra_index_urls: texts,
  conda: z.record(z.string(), z.unknown()).nullish(),
  env_vars: z.record(z.string(), z.string()).nullish(),
  py_modules: texts,
  zips: z.array(z.array(z.string())).nullish(),
  head_image: path,
  worker_image: path,
  requirements_path: path,
  conda_environment_path: path,
});

/** The environment of a job as its manifest defines it. */
export interface Runtime {
  /** Ray's own `runtime_env`. */
  readonly env: Readonly<Record<string, unknown>> & { readonly env_vars: Readonly<Record<string, string>> };
  readonly headImage: string | undefined;
  readonly workerImage: string | undefined;
}

/** The variable with the zips of a workspace for Geneva in a worker. */
const zipsVariable = "GENEVA_ZIPS";
const ownPrefix = "TILTYARD_";

/**
 * Returns Ray's `runtime_env` of a manifest.
 *
 * @param manifest The manifest of the request.
 * @throws NeedsError if the manifest is invalid or requires files that exist only on the machine of the caller.
 */
export function runtimeOf(manifest: string | undefined): Runtime {
  if (manifest === undefined) return { env: { env_vars: {} }, headImage: undefined, workerImage: undefined };
  const given = parse(manifest);
  const { pip, pip_extra_index_urls: indices, conda, env_vars, py_modules: modules, zips } = given;
  for (const name of ["requirements_path", "conda_environment_path"] as const)
    if (given[name]) refuse(`${name} is a file of the caller's machine: write the packages in pip or in conda`);
  if (isFilled(pip) && isFilled(Object.keys(conda ?? {})))
    refuse("Ray installs packages either with pip or with conda: write those of pip in the dependencies of conda");
  const local = [...(modules ?? []), ...(zips ?? []).flat()].find((uri) => !/^\w+:\/\//.test(uri));
  if (local !== undefined)
    refuse(`${local} is a file of the caller's machine: upload it, and name its URI, as s3://bucket/code.zip`);
  const own = Object.keys(env_vars ?? {}).find((name) => name.startsWith(ownPrefix));
  if (own !== undefined) refuse(`env_vars must not have ${own}, which the runner sets`);
  return {
    env: {
      ...(isFilled(pip) && { pip }),
      ...(conda && Object.keys(conda).length > 0 && { conda }),
      ...(isFilled(modules) && { py_modules: modules }),
      env_vars: {
        ...env_vars,
        ...(isFilled(indices) && { PIP_EXTRA_INDEX_URL: indices.join(" ") }),
        ...(isFilled(zips?.flat()) && { [zipsVariable]: Buffer.from(JSON.stringify({ zips })).toString("base64") }),
      },
    },
    headImage: given.head_image || undefined,
    workerImage: given.worker_image || undefined,
  };
}

function parse(manifest: string): z.infer<typeof Manifest> {
  let content: unknown;
  try {
    content = JSON.parse(manifest);
  } catch {
    return refuse("is not JSON");
  }
  const parsed = Manifest.safeParse(content);
  if (parsed.success) return parsed.data;
  return refuse(parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; "));
}

function isFilled<Item>(list: readonly Item[] | null | undefined): list is readonly Item[] {
  return list !== null && list !== undefined && list.length > 0;
}

function refuse(problem: string): never {
  throw new NeedsError(`manifest: ${problem}`);
}
