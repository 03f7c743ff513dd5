import { z } from "zod";
import { jsonOrUndefined } from "./json.ts";
import { parsing, problemsIn } from "./parsing.ts";

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
export type Manifest = z.infer<typeof Manifest>;

const ownPrefix = "TILTYARD_";
/** The packages of modules that Ray downloads. */
const moduleUri = /^(?:https?|s3|gs|azure|abfss|file):\/\/[^?]+\.(?:zip|whl)(?:\?|$)/;

/**
 * Parses the manifest of a job.
 *
 * @param refuse Throws the error of a manifest that is invalid, that Ray refuses, or that needs files of the caller's
 * machine.
 */
export function parseManifest(text: string, refuse: (problem: string) => never): Manifest {
  const given = parse(text, refuse);
  const { pip, conda, env_vars, py_modules: modules, zips } = given;
  for (const name of ["requirements_path", "conda_environment_path"] as const)
    if (given[name]) refuse(`${name} is a file of the caller's machine: write the packages in pip or in conda`);
  if (pip?.length && Object.keys(conda ?? {}).length > 0)
    refuse("Ray installs packages either with pip or with conda: write those of pip in the dependencies of conda");
  const local = [...(modules ?? []), ...(zips ?? []).flat()].find((uri) => !/^\w+:\/\//.test(uri));
  if (local !== undefined)
    refuse(`${local} is a file of the caller's machine: upload it, and name its URI, as s3://bucket/code.zip`);
  const foreign = modules?.find((uri) => !moduleUri.test(uri));
  if (foreign !== undefined)
    refuse(`py_modules: Ray cannot load ${foreign}: name the URI of a .zip or .whl, as s3://bucket/code.zip`);
  const own = Object.keys(env_vars ?? {}).find((name) => name.startsWith(ownPrefix));
  if (own !== undefined) refuse(`env_vars must not have ${own}, which the runner sets`);
  return given;
}

function parse(text: string, refuse: (problem: string) => never): Manifest {
  const content = jsonOrUndefined(text);
  if (content === undefined) return refuse("is not JSON");
  const { data, error } = Manifest.safeParse(content, parsing);
  if (error !== undefined) return refuse(problemsIn(error, "the manifest").join("; "));
  return data;
}
