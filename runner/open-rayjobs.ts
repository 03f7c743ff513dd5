import { readFileSync } from "node:fs";
import { connect, fromStackOutputs, parseStackOutputs, RayClusterApi, reapRayClusters } from "@tiltyard/client";
import { type ClusterParameters, parseJobCluster } from "@tiltyard/protocol";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import type { Platform } from "./platform.ts";
import { RayJobApi } from "./rayjob-api.ts";
import { RayJobPlatform } from "./rayjob-platform.ts";
import { TeamPlatform } from "./team-platform.ts";

export interface KubernetesOptions {
  readonly stackOutputs?: string;
  readonly file?: string;
  readonly queue?: string;
}

/** The parameters of docs/reference/ray-cluster.md for each Ray cluster, and the teams, by their names. */
const RunnerFile = z.strictObject({
  rayClusters: z.record(z.string(), z.record(z.string(), z.unknown())),
  /** Where the jobs of a team run: the team whose name is that of the first namespace of a table. */
  teams: z.record(z.string(), z.strictObject({ namespace: z.string(), queue: z.string().optional() })).default({}),
});
type Place = z.output<typeof RunnerFile>["teams"][string];

/** Jobs on Kubernetes, and the deletion of Ray clusters whose owners died. */
interface RayJobs {
  readonly platform: Platform;
  readonly reap: (tell: (text: string) => void) => Promise<void>;
}

/**
 * Opens the RayJobs of a Kubernetes cluster: in one namespace, and in one for each team. Without a file, jobs have a Ray
 * cluster with one group of CPU workers.
 *
 * @throws ParameterError, ConnectError, and Error for files that are not valid and for missing rights.
 */
export async function openRayJobs(
  { stackOutputs, file, queue }: KubernetesOptions,
  where: { readonly catalogUrl: string; readonly leaseSeconds: number },
): Promise<RayJobs> {
  const outputs = stackOutputs === undefined ? undefined : parseStackOutputs(read(stackOutputs));
  const stack = outputs === undefined ? {} : fromStackOutputs(outputs);
  const given = parseFile(file === undefined ? { rayClusters: { default: {} } } : read(file));
  const ofStack: Readonly<Record<string, Place>> = Object.fromEntries(
    Object.entries(outputs?.teams ?? {}).map(([name, { namespace }]) => [name, { namespace, queue: outputs?.queue }]),
  );
  const templates = templatesOf(given.rayClusters, stack);
  const [first]: (ClusterParameters | undefined)[] = Object.values(templates);
  if (first === undefined) throw new Error("the file of the runner names no Ray cluster");
  const config = await connect(first);
  const open = async (place: Place, team?: string) => {
    const api = await requireRights(new RayJobApi(config, place.namespace));
    const inPlace = templatesOf(given.rayClusters, stack, place.namespace);
    return new RayJobPlatform({ ...where, api, templates: inPlace, queue: place.queue, team });
  };
  const own = await open({ namespace: first.namespace, queue });
  const teams = Object.entries({ ...ofStack, ...given.teams });
  const ofTeams = await Promise.all(teams.map(async ([name, place]) => [name, await open(place, name)] as const));
  const clusters = [first.namespace, ...teams.map(([, { namespace }]) => namespace)].map(
    (namespace) => new RayClusterApi(config, namespace),
  );
  return {
    platform: teams.length === 0 ? own : new TeamPlatform(own, new Map(ofTeams)),
    reap: async (tell) => {
      for (const each of clusters)
        for (const { name, owner } of await reapRayClusters(each))
          tell(`the Ray cluster ${name} is deleted: its owner ${owner} died`);
    },
  };
}

async function requireRights(api: RayJobApi): Promise<RayJobApi> {
  const missing = await api.missingRights();
  if (missing.length === 0) return api;
  throw new Error(`the runner may not ${missing.join(", ")} in the namespace ${api.namespace}: docs/guides/jobs.md`);
}

/**
 * Reads the Ray clusters of a runner's file, by their names.
 *
 * @param stack Parameters of those that do not say otherwise.
 * @throws ParameterError, and Error for a file that is not valid.
 */
export function templatesIn(content: unknown, stack: object): Readonly<Record<string, ClusterParameters>> {
  return templatesOf(parseFile(content).rayClusters, stack);
}

function parseFile(content: unknown): z.output<typeof RunnerFile> {
  const parsed = RunnerFile.safeParse(content);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Error(`the file of the runner is not valid:\n  ${problems.join("\n  ")}`);
}

/** @param namespace That of a team; the templates' own when absent. */
function templatesOf(
  rayClusters: z.output<typeof RunnerFile>["rayClusters"],
  stack: object,
  namespace?: string,
): Readonly<Record<string, ClusterParameters>> {
  const place = namespace === undefined ? {} : { namespace };
  return Object.fromEntries(
    Object.entries(rayClusters).map(([name, given]) => [name, parseJobCluster(name, stack, given, place)]),
  );
}

function read(file: string): unknown {
  return parseYaml(readFileSync(file, "utf8"));
}
