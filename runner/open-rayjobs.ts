import { readFileSync } from "node:fs";
import { connect, fromStackOutputs, RayClusterApi, reapRayClusters } from "@tiltyard/client";
import { type ClusterParameters, parseJobCluster } from "@tiltyard/protocol";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { RayJobApi } from "./rayjob-api.ts";
import { RayJobPlatform } from "./rayjob-platform.ts";

export interface KubernetesOptions {
  readonly stackOutputs?: string;
  readonly file?: string;
  readonly queue?: string;
}

/** What the file of a runner has: the parameters of docs/reference/ray-cluster.md, for each Ray cluster by its name. */
const RunnerFile = z.strictObject({ rayClusters: z.record(z.string(), z.record(z.string(), z.unknown())) });

/**
 * The RayJobs of a cluster of Kubernetes, and how its Ray clusters are deleted whose owners died. Without a file, jobs have a Ray cluster with one group of CPU workers.
 *
 * @throws ParameterError, ConnectError, and Error for files that are not what they must be
 */
export async function openRayJobs(
  { stackOutputs, file, queue }: KubernetesOptions,
  where: { readonly catalogUrl: string; readonly leaseSeconds: number },
): Promise<{ readonly platform: RayJobPlatform; readonly reap: (tell: (text: string) => void) => Promise<void> }> {
  const stack = stackOutputs === undefined ? {} : fromStackOutputs(read(stackOutputs));
  const templates = templatesIn(file === undefined ? { rayClusters: { default: {} } } : read(file), stack);
  const [first]: (ClusterParameters | undefined)[] = Object.values(templates);
  if (first === undefined) throw new Error("the file of the runner names no Ray cluster");
  const config = await connect(first);
  const api = new RayJobApi(config, first.namespace);
  const missing = await api.missingRights();
  if (missing.length > 0)
    throw new Error(
      `the runner may not ${missing.join(", ")} in the namespace ${first.namespace}: docs/guides/jobs.md`,
    );
  const clusters = new RayClusterApi(config, first.namespace);
  return {
    platform: new RayJobPlatform({ ...where, api, templates, queue }),
    reap: async (tell) => {
      for (const { name, owner } of await reapRayClusters(clusters))
        tell(`the Ray cluster ${name} is deleted: its owner ${owner} died`);
    },
  };
}

/**
 * The Ray clusters of a runner's file, by their names.
 *
 * @param stack What they have that do not say otherwise.
 * @throws ParameterError, and Error for what is no such file
 */
export function templatesIn(content: unknown, stack: object): Readonly<Record<string, ClusterParameters>> {
  const parsed = RunnerFile.safeParse(content);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw new Error(`the file of the runner is not valid:\n  ${problems.join("\n  ")}`);
  }
  return Object.fromEntries(
    Object.entries(parsed.data.rayClusters).map(([name, given]) => [name, parseJobCluster(name, stack, given)]),
  );
}

function read(file: string): unknown {
  return parseYaml(readFileSync(file, "utf8"));
}
