import type { SecretKey } from "@tiltyard/client";
import { parseManifest } from "@tiltyard/protocol";
import { NeedsError } from "./platform.ts";

/** The environment of a job as its manifest defines it. */
export interface Runtime {
  /** Ray's own `runtime_env`. */
  readonly env: Readonly<Record<string, unknown>> & { readonly env_vars: Readonly<Record<string, string>> };
  /** The variables whose values are in Secrets of Kubernetes. */
  readonly secretEnv: Readonly<Record<string, SecretKey>>;
  readonly headImage: string | undefined;
  readonly workerImage: string | undefined;
}

/** The variable with the zips of a workspace for Geneva in a worker. */
const zipsVariable = "GENEVA_ZIPS";
/** A value of `env_vars` that refers to a Secret: `secret://NAME/KEY`. */
const secretScheme = "secret://";
const secretReference = /^secret:\/\/([a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?)\/([-._a-zA-Z0-9]{1,253})$/;
/** The variables that a Secret may become. Those of Ray determine how its pods start. */
const secretVariable = /^(?!RAY_|KUBERAY_)[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Returns Ray's `runtime_env` of a manifest.
 *
 * @param manifest The manifest of the request.
 * @throws NeedsError if the manifest is invalid or requires files that exist only on the machine of the caller.
 */
export function runtimeOf(manifest: string | undefined): Runtime {
  if (manifest === undefined)
    return { env: { env_vars: {} }, secretEnv: {}, headImage: undefined, workerImage: undefined };
  const given = parseManifest(manifest, refuse);
  const { pip, pip_extra_index_urls: indices, conda, env_vars, py_modules: modules, zips } = given;
  const variables = Object.entries(env_vars ?? {});
  const isSecret = ([, value]: readonly [string, string]) => value.startsWith(secretScheme);
  return {
    env: {
      ...(isFilled(pip) && { pip }),
      ...(conda && Object.keys(conda).length > 0 && { conda }),
      ...(isFilled(modules) && { py_modules: modules }),
      env_vars: {
        ...Object.fromEntries(variables.filter((variable) => !isSecret(variable))),
        ...(isFilled(indices) && { PIP_EXTRA_INDEX_URL: indices.join(" ") }),
        ...(isFilled(zips?.flat()) && { [zipsVariable]: Buffer.from(JSON.stringify({ zips })).toString("base64") }),
      },
    },
    secretEnv: Object.fromEntries(variables.filter(isSecret).map(([name, value]) => [name, secretKeyOf(name, value)])),
    headImage: given.head_image || undefined,
    workerImage: given.worker_image || undefined,
  };
}

function secretKeyOf(variable: string, value: string): SecretKey {
  const [, name, key] = secretReference.exec(value) ?? [];
  if (name === undefined || key === undefined)
    return refuse(
      `env_vars.${variable}: ${value} is not ${secretScheme}NAME/KEY, the name of a Secret and one of its keys`,
    );
  if (!secretVariable.test(variable)) refuse(`env_vars: a Secret must not become the variable ${variable}`);
  return { name, key };
}

function isFilled<Item>(list: readonly Item[] | null | undefined): list is readonly Item[] {
  return list !== null && list !== undefined && list.length > 0;
}

function refuse(problem: string): never {
  throw new NeedsError(`manifest: ${problem}`);
}
