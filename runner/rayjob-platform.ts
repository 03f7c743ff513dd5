import type { V1Pod } from "@kubernetes/client-node";
import {
  amountOf,
  type ClusterParameters,
  clusterLabel,
  clusterState,
  KubernetesError,
  nodeTypeLabel,
  rayClusterSpec,
} from "@tiltyard/client";
import { managedByRunner } from "@tiltyard/platform";
import { formatIdentifier } from "@tiltyard/protocol";
import { definedCluster } from "./defined-cluster.ts";
import { asText, lastLinesOf, messageOfRay } from "./job-text.ts";
import type { StartableJob } from "./jobs.ts";
import {
  type AttemptState,
  bareIdOf,
  entrypointOf,
  isJobId,
  NeedsError,
  type Platform,
  type PlatformAttempt,
  type StartRequest,
} from "./platform.ts";
import { hasEnded, type RayJobApi, type RayJobObject } from "./rayjob-api.ts";
import { type Runtime, runtimeOf } from "./runtime-env.ts";

const attemptAnnotations = { job: "tiltyard.dev/job", attempt: "tiltyard.dev/attempt" } as const;
/** The label by which Kueue admits RayJobs. It removes `suspend` when the quota allows. */
const queueLabel = "kueue.x-k8s.io/queue-name";
/** The annotation by which Kueue also admits workers that Ray adds. It refuses autoscaling without it. */
const elastic = { "kueue.x-k8s.io/elastic-job": "true" } as const;
/**
 * The annotation that disables the restart of a head (KubeRay 1.6). A lost head loses its job, and another one would
 * run the same attempt a second time.
 */
const noSecondHead = { "ray.io/disable-provisioned-head-restart": "true" } as const;
/** The statuses of the API server for an invalid object. */
const invalid: readonly (number | undefined)[] = [400, 422];
const defaultTemplate = "default";

/** KubeRay reports an error of a submission, or of a request for the status of the job, without its text. */
const unsubmitted =
  'KubeRay cannot submit the job to its Ray cluster, and retries. The log of its operator has the error: "Failed to submit the Ray job"';

/** KubeRay's statuses of a RayJob that Kueue has not admitted yet. */
const suspended: readonly (string | undefined)[] = ["Suspended", "Suspending"];

export interface RayJobOptions {
  readonly api: RayJobApi;
  /** The Ray clusters by the name in a request's `cluster`. */
  readonly templates: ReadonlyMap<string, ClusterParameters>;
  /** The queue of Kueue; undefined without one. */
  readonly queue: string | undefined;
  /** The Secrets of the namespace whose keys jobs may have as variables. */
  readonly jobSecrets: readonly string[];
  /** The team of the jobs; undefined for jobs of no team. */
  readonly team?: string | undefined;
  readonly catalogUrl: string;
  readonly leaseSeconds: number;
}

/**
 * Runs each attempt as a RayJob of KubeRay on a separate Ray cluster. Its name is derived from the attempt, so only one of
 * several runners can start it. The API server has all state that runners share.
 */
export class RayJobPlatform implements Platform {
  readonly #options: RayJobOptions;

  constructor(options: RayJobOptions) {
    this.#options = options;
  }

  async list(): Promise<readonly PlatformAttempt[]> {
    const { api, queue } = this.#options;
    const found = (await api.list((rayJob) => toListed(rayJob, queue))).flat();
    const open = found.flatMap(({ attempt, cluster }) => (attempt.state === "ended" ? [] : cluster));
    const pending = await api.pods(open, "Pending");
    const waiting = found.map((each) => ({ ...each, waitReason: waitReasonOf(each, pending) }));
    // A running job needs one worker and continues without the others.
    const begun = waiting.filter(({ attempt, waitReason }) => isBegun(attempt) && waitReason !== undefined);
    const running = await api.pods(
      begun.map(({ cluster }) => cluster),
      "Running",
    );
    const withWorker = new Set(running.filter(isReadyWorker).map(clusterOf));
    return waiting.map(({ attempt, cluster, waitReason }) => {
      const needsNoPod = isBegun(attempt) && withWorker.has(cluster) && waitReason !== unsubmitted;
      return { ...attempt, waitReason: needsNoPod ? undefined : waitReason };
    });
  }

  async start({ job, number, apiKey }: StartRequest): Promise<void> {
    const { api } = this.#options;
    const name = nameOf(job.id, number);
    const rayJob = this.#rayJobOf(job, number);
    // The key must exist before the pods that would wait for it.
    await api.putSecret(name, { apiKey });
    const created = await api.create(rayJob).catch(async (error) => {
      if (!(error instanceof KubernetesError)) throw error;
      // A failed deletion must not hide the original error.
      if (isRefusal(error)) await this.#withdrawKey(name).catch(() => undefined);
      throw invalid.includes(error.status) || error.isDenied ? new NeedsError(error.message) : error;
    });
    if (created?.metadata !== undefined) await api.setSecretOwner(name, created.metadata);
  }

  /** Deletes the key unless another runner has created a RayJob of this name, which needs it. */
  async #withdrawKey(name: string): Promise<void> {
    const { api } = this.#options;
    if ((await api.find(name)) === undefined) await api.deleteSecret(name);
  }

  async stop({ jobId, number }: Pick<PlatformAttempt, "jobId" | "number">): Promise<void> {
    const { api } = this.#options;
    const name = nameOf(jobId, number);
    await api.delete(name);
    await api.deleteSecret(name);
  }

  async forget(attempt: PlatformAttempt): Promise<void> {
    await this.stop(attempt);
  }

  /** Returns the end of the output, which is part of Ray's message about the end of the job. */
  async lastLines({ jobId, number }: PlatformAttempt): Promise<string> {
    const found = await this.#options.api.find(nameOf(jobId, number));
    return lastLinesOf(found?.status?.message ?? "");
  }

  async describe(job: StartableJob, number: number): Promise<Readonly<Record<string, string>>> {
    return { ray_job: `${this.#options.api.namespace}/${nameOf(job.id, number)}` };
  }

  /** Returns the template of a job's Ray cluster. @throws NeedsError */
  #templateOf({ parameters }: StartableJob): ClusterParameters {
    const { templates } = this.#options;
    const name = parameters.cluster ?? defaultTemplate;
    const template = templates.get(name);
    if (template !== undefined) return template;
    const base = templates.get(defaultTemplate);
    if (parameters.cluster_definition !== undefined && base !== undefined)
      return definedCluster(base, parameters.cluster_definition);
    const names = [...templates.keys()].join(", ");
    throw new NeedsError(`cluster: the runner has no Ray cluster ${JSON.stringify(name)}; it has: ${names}`);
  }

  /** Returns the namespace of a team's Geneva records, the only one that keys of its jobs may write to. */
  get #records(): Readonly<Record<string, string>> {
    const { team } = this.#options;
    return team === undefined ? {} : { TILTYARD_SYSTEM_NAMESPACE: formatIdentifier([team, "__system"]) };
  }

  /** Requires that all Secrets of a manifest are ones that the operator has named. @throws NeedsError */
  #requireAllowed({ secretEnv }: Runtime): void {
    const { jobSecrets } = this.#options;
    for (const [variable, { name }] of Object.entries(secretEnv))
      if (!jobSecrets.includes(name))
        throw new NeedsError(
          `manifest: env_vars.${variable}: the operator allows jobs no Secret ${name}: ask for it in jobSecrets of the runner, which has: ${jobSecrets.join(", ") || "none"}`,
        );
  }

  /** Returns the RayJob of an attempt. @throws NeedsError */
  #rayJobOf(job: StartableJob, number: number): RayJobObject {
    const { queue, catalogUrl, leaseSeconds } = this.#options;
    const name = nameOf(job.id, number);
    const runtime = runtimeOf(job.parameters.manifest);
    this.#requireAllowed(runtime);
    const cluster = { ...withImages(this.#templateOf(job), runtime), catalogUrl };
    const env = { ...cluster.env, ...autoscaling(cluster), ...this.#records };
    return {
      apiVersion: "ray.io/v1",
      kind: "RayJob",
      metadata: {
        name,
        labels: { ...managedByRunner, ...(queue !== undefined && { [queueLabel]: queue }) },
        annotations: { ...annotationsOf(job.id, number), ...noSecondHead, ...(queue !== undefined && elastic) },
      },
      spec: {
        runtimeEnvYAML: JSON.stringify(runtime.env),
        entrypoint: entrypointOf(job.id, number, leaseSeconds),
        // The operator submits the job, so that no additional pod is needed.
        submissionMode: "HTTPMode",
        suspend: queue !== undefined,
        // The runner retries jobs itself, because it also considers heartbeats.
        backoffLimit: 0,
        shutdownAfterJobFinishes: true,
        rayClusterSpec: rayClusterSpec(
          { ...cluster, catalogKeySecret: name, env },
          {
            isOfOneJob: true,
            secretEnv: runtime.secretEnv,
          },
        ),
      },
    };
  }
}

/**
 * Reports whether the API server rejected a request without any effect. Without a response, or after a server error,
 * the effect is unknown.
 */
function isRefusal({ status = 0 }: KubernetesError): boolean {
  return status >= 400 && status < 500;
}

/** Returns the variables with the possible workers of a job's Ray cluster, which has none yet at its start. */
function autoscaling({ workerGroups }: ClusterParameters): Readonly<Record<string, string>> {
  const workers = workerGroups.map(({ name, numCpus, numGpus, memory }) => ({
    name,
    cpus: numCpus,
    gpus: numGpus,
    memory_bytes: amountOf(memory),
  }));
  return { TILTYARD_RAY_AUTOSCALES: "1", TILTYARD_RAY_WORKERS: JSON.stringify(workers) };
}

/** Replaces the images of a template by those of a manifest. */
function withImages(template: ClusterParameters, { headImage, workerImage }: Runtime): ClusterParameters {
  const { headGroup, workerGroups } = template;
  return {
    ...template,
    headGroup: { ...headGroup, image: headImage ?? headGroup.image },
    workerGroups: workerGroups.map((group) => ({ ...group, image: workerImage ?? group.image })),
  };
}

/** Returns the reason why an attempt waits for pods, or for a condition before them. */
function waitReasonOf({ attempt, cluster, unmet }: Listed, pending: readonly V1Pod[]): string | undefined {
  if (attempt.state === "ended" || attempt.state === "queued" || unmet === unsubmitted) return unmet;
  const own = pending.filter((pod) => clusterOf(pod) === cluster);
  if (own.length === 0) return unmet;
  return clusterState({ status: {} }, 1, own).stuck.join("; ") || undefined;
}

function clusterOf({ metadata }: V1Pod): string | undefined {
  return metadata?.labels?.[clusterLabel];
}

/** Reports whether the Ray cluster of an attempt has started. */
function isBegun({ state }: PlatformAttempt): boolean {
  return state === "running" || state === "starting";
}

function isReadyWorker({ metadata, status }: V1Pod): boolean {
  const isReady = status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") ?? false;
  return isReady && metadata?.labels?.[nodeTypeLabel] !== "head";
}

/** Returns the name of an attempt's RayJob. KubeRay allows 47 characters. */
function nameOf(jobId: string, number: number): string {
  return `job-${bareIdOf(jobId)}-${number}`;
}

function annotationsOf(jobId: string, number: number): Readonly<Record<string, string>> {
  return { [attemptAnnotations.job]: jobId, [attemptAnnotations.attempt]: String(number) };
}

/** A RayJob of an attempt. */
interface Listed {
  readonly attempt: PlatformAttempt;
  /** The name of its Ray cluster; empty before it is created. */
  readonly cluster: string;
  /** The reason why it waits that its pods do not show. */
  readonly unmet: string | undefined;
}

/** Returns the short part of a RayJob that a pass needs; nothing for a RayJob that is no attempt. */
function toListed(rayJob: RayJobObject, queue: string | undefined): Listed[] {
  const { metadata, status } = rayJob;
  const jobId = metadata?.annotations?.[attemptAnnotations.job];
  const number = Number(metadata?.annotations?.[attemptAnnotations.attempt]);
  if (!isJobId(jobId) || !Number.isSafeInteger(number)) return [];
  // A RayJob under another name could not be deleted as the attempt that its annotations claim.
  if (metadata?.name !== nameOf(jobId, number)) return [];
  // A RayJob that is being deleted was stopped.
  if (metadata.deletionTimestamp !== undefined) return [];
  const message = messageOf(rayJob);
  const state = stateOf(rayJob);
  return [
    {
      attempt: { jobId, number, state, message: message === undefined ? undefined : asText(message) },
      cluster: status?.rayClusterName ?? "",
      unmet: unmetOf(state, rayJob, queue),
    },
  ];
}

function unmetOf(state: AttemptState, { status }: RayJobObject, queue = "of Kueue"): string | undefined {
  if (state === "ended") return undefined;
  if (state === "queued") return `the queue ${queue} has not admitted it`;
  if (state === "starting" && status?.jobStatusCheckFailureStartTime) return unsubmitted;
  if (!status?.rayClusterName) return undefined;
  const [reason] = clusterState({ status: status.rayClusterStatus ?? {} }, 1, []).stuck;
  return reason === undefined ? undefined : asText(reason);
}

/** Returns the reason of a failure. An attempt that Ray considers successful has none. */
function messageOf({ status }: RayJobObject): string | undefined {
  if (status?.jobStatus === "SUCCEEDED") return undefined;
  return status?.message === undefined ? status?.reason : messageOfRay(status.message);
}

/**
 * Returns the state of an attempt. KubeRay reports a RayJob as Running before Ray has its job, which may still install
 * packages.
 */
function stateOf(rayJob: RayJobObject): AttemptState {
  if (hasEnded(rayJob)) return "ended";
  const { status } = rayJob;
  if (suspended.includes(status?.jobDeploymentStatus)) return "queued";
  if (status?.jobDeploymentStatus !== "Running") return "waiting";
  return status.jobStatus === "RUNNING" ? "running" : "starting";
}
