import { readFileSync } from "node:fs";
import { type ClusterParameters, connect, fromStackOutputs, parseFileParameters } from "@tiltyard/client";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { RayJobApi } from "./rayjob-api.ts";
import { RayJobPlatform } from "./rayjob-platform.ts";

export interface KubernetesOptions {
  readonly stackOutputs?: string;
  readonly file?: string;
  readonly queue?: string;
}

/** What the file of a runner has: the parameters of docs/client.md, for each Ray cluster by its name. */
const RunnerFile = z.strictObject({ rayClusters: z.record(z.string(), z.record(z.string(), z.unknown())) });

/**
 * The RayJobs of a cluster of Kubernetes. Without a file, jobs have a Ray cluster with one group of CPU workers.
 *
 * @throws ParameterError, ConnectError, and Error for files that are not what they must be
 */
export async function openRayJobs(
  { stackOutputs, file, queue }: KubernetesOptions,
  where: { readonly catalogUrl: string; readonly leaseSeconds: number },
): Promise<RayJobPlatform> {
  const stack = stackOutputs === undefined ? {} : fromStackOutputs(read(stackOutputs));
  const { rayClusters } = file === undefined ? { rayClusters: { default: {} } } : parseFile(file);
  const templates = Object.fromEntries(
    Object.entries(rayClusters).map(([name, given]) => [
      name,
      parseFileParameters({ workerGroups: [{}] }, stack, given, { name }),
    ]),
  );
  const [first]: (ClusterParameters | undefined)[] = Object.values(templates);
  if (first === undefined) throw new Error(`${file}: rayClusters has no Ray cluster`);
  const config = await connect(first);
  const api = new RayJobApi(config, first.namespace);
  const missing = await api.missingRights();
  if (missing.length > 0)
    throw new Error(`the runner may not ${missing.join(", ")} in the namespace ${first.namespace}: docs/jobs.md`);
  return new RayJobPlatform({ ...where, api, templates, queue });
}

function parseFile(file: string): z.infer<typeof RunnerFile> {
  const parsed = RunnerFile.safeParse(read(file));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Error(`${file} is not the file of a runner:\n  ${problems.join("\n  ")}`);
}

function read(file: string): unknown {
  return parseYaml(readFileSync(file, "utf8"));
}
