import {
  connect,
  fromStackOutputs,
  RayClusterApi,
  readStack,
  readYaml,
  reapRayClusters,
  UsageError,
} from "@tiltyard/client";
import { type ClusterParameters, parseJobCluster, runnerRights } from "@tiltyard/platform";
import { documentationPage, parsing, problemsIn } from "@tiltyard/protocol";
import { z } from "zod";
import { settleAll } from "./failure.ts";
import type { Platform } from "./platform.ts";
import { RayJobApi } from "./rayjob-api.ts";
import { RayJobPlatform } from "./rayjob-platform.ts";
import { TeamPlatform } from "./team-platform.ts";

export interface KubernetesOptions {
  readonly stackOutputs?: string;
  readonly file?: string;
  readonly queue?: string;
}

/** The file of a runner: the parameters of each Ray cluster (docs/reference/ray-cluster.md) and the teams, by name. */
const RunnerFile = z.strictObject({
  rayClusters: z.record(z.string(), z.record(z.string(), z.unknown())),
  /** The Secrets whose keys manifests may name, in each namespace of jobs. Any principal that opens jobs there can read them. */
  jobSecrets: z.array(z.string()).default([]),
  /** The namespaces of the teams' jobs, by the name of the team, which is the first namespace of its tables. */
  teams: z.record(z.string(), z.strictObject({ namespace: z.string(), queue: z.string().optional() })).default({}),
});
type TeamNamespace = z.output<typeof RunnerFile>["teams"][string];

/** The platform of jobs on Kubernetes, with the deletion of orphaned Ray clusters. */
interface RayJobs {
  readonly platform: Platform;
  readonly reap: (log: (text: string) => void) => Promise<void>;
}

/**
 * Opens the RayJobs of a Kubernetes cluster, in one namespace and in one for each team. Without a file, jobs have a Ray
 * cluster with one group of CPU workers. Missing rights in the namespace of a team are logged, and only its jobs wait.
 *
 * @throws ParameterError, ConnectError; UsageError for invalid files; Error for missing rights.
 */
export async function openRayJobs(
  options: KubernetesOptions,
  where: { readonly catalogUrl: string; readonly leaseSeconds: number },
  log: (text: string) => void,
): Promise<RayJobs> {
  const { file, queue } = options;
  const outputs = readStack(options);
  const stack = outputs === undefined ? {} : fromStackOutputs(outputs);
  const given = parseFile(file === undefined ? { rayClusters: { default: {} } } : readYaml(file));
  const ofStack: Readonly<Record<string, TeamNamespace>> = Object.fromEntries(
    Object.entries(outputs?.teams ?? {}).map(([name, { namespace }]) => [name, { namespace, queue: outputs?.queue }]),
  );
  const templates = templatesOf(given.rayClusters, stack);
  const [first] = templates.values();
  if (first === undefined) throw new UsageError("the file of the runner names no Ray cluster");
  const config = await connect(first);
  const open = async (target: TeamNamespace, team?: string) => {
    const api = new RayJobApi(config, target.namespace);
    const problem = await problemOfRights(api);
    if (problem !== undefined && team === undefined) throw new Error(problem);
    if (problem !== undefined) log(`the jobs of the team ${team} wait: ${problem}`);
    const templates = templatesOf(given.rayClusters, stack, target.namespace);
    return new RayJobPlatform({ ...where, api, templates, queue: target.queue, team, jobSecrets: given.jobSecrets });
  };
  const own = await open({ namespace: first.namespace, queue });
  const teams = Object.entries({ ...ofStack, ...given.teams });
  const ofTeams = await Promise.all(teams.map(async ([name, target]) => [name, await open(target, name)] as const));
  const clusters = [first.namespace, ...teams.map(([, { namespace }]) => namespace)].map(
    (namespace) => new RayClusterApi(config, namespace),
  );
  return {
    platform: teams.length === 0 ? own : new TeamPlatform(own, new Map(ofTeams)),
    reap: (log) => reapAll(clusters, log),
  };
}

/** Deletes the Ray clusters of several namespaces whose owners died. @throws KubernetesError after all namespaces. */
export async function reapAll(namespaces: readonly RayClusterApi[], log: (text: string) => void): Promise<void> {
  await settleAll(
    namespaces.map(async (each) => {
      for (const { name, owner } of await reapRayClusters(each))
        log(`the Ray cluster ${name} is deleted: its owner ${owner} died`);
    }),
  );
}

/** Names the rights that the runner lacks in a namespace; undefined if it lacks none. */
async function problemOfRights(api: RayJobApi): Promise<string | undefined> {
  const missing = await api.missingRights(runnerRights);
  if (missing.length === 0) return undefined;
  return `the runner may not ${missing.join(", ")} in the namespace ${api.namespace}: ${documentationPage("jobs")}`;
}

/**
 * Parses the Ray clusters of a runner's file by name.
 *
 * @param stack The default parameters.
 * @throws ParameterError; UsageError for an invalid file.
 */
export function templatesIn(content: unknown, stack: object): ReadonlyMap<string, ClusterParameters> {
  return templatesOf(parseFile(content).rayClusters, stack);
}

function parseFile(content: unknown): z.output<typeof RunnerFile> {
  const parsed = RunnerFile.safeParse(content, parsing);
  if (parsed.success) return parsed.data;
  const problems = problemsIn(parsed.error, "the file");
  throw new UsageError(`the file of the runner is not valid:\n  ${problems.join("\n  ")}`);
}

/** @param namespace The namespace of a team; that of the templates when absent. */
function templatesOf(
  rayClusters: z.output<typeof RunnerFile>["rayClusters"],
  stack: object,
  namespace?: string,
): ReadonlyMap<string, ClusterParameters> {
  const overrides = namespace === undefined ? {} : { namespace };
  return new Map(
    Object.entries(rayClusters).map(([name, given]) => [name, parseJobCluster(name, stack, given, overrides)]),
  );
}
