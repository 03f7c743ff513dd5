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
import { formatIdentifier } from "@tiltyard/protocol";
import type { OpenJob } from "./jobs.ts";
import {
  type AttemptState,
  bareIdOf,
  entrypointOf,
  lastLinesOf,
  NeedsError,
  type Platform,
  type PlatformAttempt,
  type StartRequest,
} from "./platform.ts";
import { managedBy, type RayJobApi, type RayJobObject } from "./rayjob-api.ts";
import { type Runtime, runtimeOf } from "./runtime-env.ts";

const annotations = { job: "tiltyard.dev/job", attempt: "tiltyard.dev/attempt" } as const;
/** Kueue admits what has this label: it takes `suspend` away when there is room. */
const queueLabel = "kueue.x-k8s.io/queue-name";
/** A head that is lost takes its job with it: another one would run the same attempt a second time. KubeRay 1.6. */
const noSecondHead = { "ray.io/disable-provisioned-head-restart": "true" } as const;
/** The API server's words for an object that it will never take. */
const invalid: readonly (number | undefined)[] = [400, 422];
const defaultTemplate = "default";

/** KubeRay's words for a RayJob that has ended. */
const ended: readonly (string | undefined)[] = ["Complete", "Failed", "ValidationFailed"];

/** And for one that Kueue has not admitted yet. */
const suspended: readonly (string | undefined)[] = ["Suspended", "Suspending"];

export interface RayJobOptions {
  readonly api: RayJobApi;
  /** Ray clusters by the name that a request's `cluster` has. */
  readonly templates: Readonly<Record<string, ClusterParameters>>;
  /** Kueue's queue; undefined where there is none. */
  readonly queue: string | undefined;
  /** The team whose jobs these are; undefined for those of no team. */
  readonly team?: string | undefined;
  readonly catalogUrl: string;
  readonly leaseSeconds: number;
}

/**
 * Runs each attempt as a RayJob of KubeRay, on a Ray cluster of its own. Its name is made from the attempt, so
 * that of several runners one starts it; what it needs of them all is in the cluster.
 */
export class RayJobPlatform implements Platform {
  readonly #options: RayJobOptions;

  constructor(options: RayJobOptions) {
    this.#options = options;
  }

  async list(): Promise<readonly PlatformAttempt[]> {
    const rayJobs = await this.#options.api.list();
    const waiting = await this.#waitingPods(rayJobs);
    return Promise.all(
      rayJobs.flatMap((rayJob) =>
        toAttempt(rayJob).map(async (attempt) => ({ ...attempt, lack: await this.#lackOf(attempt, rayJob, waiting) })),
      ),
    );
  }

  /** The pods that do not run yet, of Ray clusters that are needed. */
  async #waitingPods(rayJobs: readonly RayJobObject[]): Promise<readonly V1Pod[]> {
    const needed = rayJobs.filter(({ status }) => !ended.includes(status?.jobDeploymentStatus));
    return this.#options.api.pods(
      needed.flatMap(({ status }) => status?.rayClusterName || []),
      "Pending",
    );
  }

  async #lackOf(
    { state }: PlatformAttempt,
    { status }: RayJobObject,
    waiting: readonly V1Pod[],
  ): Promise<string | undefined> {
    const { api, queue } = this.#options;
    if (state === "queued") return `the queue ${queue ?? "of Kueue"} has not admitted it`;
    const cluster = status?.rayClusterName;
    if (state === "ended" || cluster === undefined || cluster === "") return undefined;
    const own = waiting.filter(({ metadata }) => metadata?.labels?.[clusterLabel] === cluster);
    const { stuck } = clusterState({ status: status?.rayClusterStatus ?? {} }, 1, own);
    if (stuck.length === 0) return undefined;
    // A job that runs needs one worker, and goes on without the others.
    const isRunning = state === "running" || state === "starting";
    if (isRunning && (await api.pods([cluster])).some(isReadyWorker)) return undefined;
    return stuck.join("; ");
  }

  async start({ job, number, apiKey }: StartRequest): Promise<void> {
    const { api, catalogUrl } = this.#options;
    const name = nameOf(job.id, number);
    const runtime = runtimeOf(job.parameters.manifest);
    const cluster = { ...withImages(this.#templateOf(job), runtime), catalogUrl, catalogKeySecret: name };
    // The key is there before pods that would wait for it.
    await api.putSecret(name, { apiKey });
    const created = await api.create(this.#rayJob(job, number, cluster, runtime)).catch(async (error) => {
      if (!(error instanceof KubernetesError)) throw error;
      // One that cannot be deleted now is no reason to tell another error.
      if (isRefusal(error)) await this.#withdrawKey(name).catch(() => undefined);
      throw invalid.includes(error.status) ? new NeedsError(error.message) : error;
    });
    if (created?.metadata !== undefined) await api.giveSecret(name, created.metadata);
  }

  /** Another runner may have made a RayJob of this name, which needs the key. */
  async #withdrawKey(name: string): Promise<void> {
    const { api } = this.#options;
    if ((await api.find(name)) === undefined) await api.deleteSecret(name);
  }

  async stop(attempt: Pick<PlatformAttempt, "jobId" | "number">): Promise<void> {
    const { api } = this.#options;
    const name = nameOf(attempt.jobId, attempt.number);
    await api.delete(name);
    await api.deleteSecret(name);
  }

  async forget(attempt: PlatformAttempt): Promise<void> {
    await this.stop(attempt);
  }

  /** What the job printed is in Ray's own message about its end. */
  async lastLines({ jobId, number }: PlatformAttempt): Promise<string> {
    const found = await this.#options.api.find(nameOf(jobId, number));
    return lastLinesOf(found?.status?.message ?? "");
  }

  async describe(jobId: string, number: number): Promise<Readonly<Record<string, string>>> {
    return { ray_job: `${this.#options.api.namespace}/${nameOf(jobId, number)}` };
  }

  /** @throws NeedsError */
  #templateOf({ parameters }: OpenJob): ClusterParameters {
    const { templates } = this.#options;
    const name = parameters.cluster ?? defaultTemplate;
    const template = templates[name];
    if (template !== undefined) return template;
    const names = Object.keys(templates).join(", ");
    throw new NeedsError(`cluster: the runner has no Ray cluster ${JSON.stringify(name)}; it has: ${names}`);
  }

  /** A team has Geneva's records of its own, which is all that a key of its jobs may write to. */
  get #records(): Readonly<Record<string, string>> {
    const { team } = this.#options;
    return team === undefined ? {} : { TILTYARD_SYSTEM_NAMESPACE: formatIdentifier([team, "__system"]) };
  }

  #rayJob({ id }: OpenJob, number: number, cluster: ClusterParameters, { env }: Runtime): RayJobObject {
    const { queue, leaseSeconds } = this.#options;
    return {
      apiVersion: "ray.io/v1",
      kind: "RayJob",
      metadata: {
        name: nameOf(id, number),
        labels: { ...managedBy, ...(queue !== undefined && { [queueLabel]: queue }) },
        annotations: { [annotations.job]: id, [annotations.attempt]: String(number), ...noSecondHead },
      },
      spec: {
        runtimeEnvYAML: JSON.stringify(env),
        entrypoint: entrypointOf(id, number, leaseSeconds),
        // The operator submits it, so that no pod has to.
        submissionMode: "HTTPMode",
        suspend: queue !== undefined,
        // The runner attempts it again, which knows of heartbeats, too.
        backoffLimit: 0,
        shutdownAfterJobFinishes: true,
        rayClusterSpec: rayClusterSpec(
          { ...cluster, env: { ...cluster.env, ...autoscaling(cluster), ...this.#records } },
          true,
        ),
      },
    };
  }
}

/** Whether the API server has done nothing: without an answer, or after a failure of its own, that is not known. */
function isRefusal({ status = 0 }: KubernetesError): boolean {
  return status >= 400 && status < 500;
}

/** Tells a job which workers its Ray cluster can have: there are none yet when it begins. */
function autoscaling({ workerGroups }: ClusterParameters): Readonly<Record<string, string>> {
  const workers = workerGroups.map(({ name, numCpus, numGpus, memory }) => ({
    name,
    cpus: numCpus,
    gpus: numGpus,
    memory_bytes: amountOf(memory),
  }));
  return { TILTYARD_RAY_AUTOSCALES: "1", TILTYARD_RAY_WORKERS: JSON.stringify(workers) };
}

/** The images of a manifest go before those of a template. */
function withImages(template: ClusterParameters, { headImage, workerImage }: Runtime): ClusterParameters {
  const { headGroup, workerGroups } = template;
  return {
    ...template,
    headGroup: { ...headGroup, image: headImage ?? headGroup.image },
    workerGroups: workerGroups.map((group) => ({ ...group, image: workerImage ?? group.image })),
  };
}

function isReadyWorker({ metadata, status }: V1Pod): boolean {
  const isReady = status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") ?? false;
  return isReady && metadata?.labels?.[nodeTypeLabel] !== "head";
}

/** KubeRay takes 47 characters. */
function nameOf(jobId: string, number: number): string {
  return `job-${bareIdOf(jobId)}-${number}`;
}

function toAttempt({ metadata, status }: RayJobObject): PlatformAttempt[] {
  const jobId = metadata?.annotations?.[annotations.job];
  const number = Number(metadata?.annotations?.[annotations.attempt]);
  // One that is being deleted was stopped.
  if (jobId === undefined || !Number.isSafeInteger(number) || metadata?.deletionTimestamp !== undefined) return [];
  return [{ jobId, number, state: stateOf(status), message: status?.message?.split("\n")[0] ?? status?.reason }];
}

/** KubeRay calls a RayJob Running before Ray has its job, which may still wait for packages. */
function stateOf(status: RayJobObject["status"]): AttemptState {
  if (ended.includes(status?.jobDeploymentStatus)) return "ended";
  if (suspended.includes(status?.jobDeploymentStatus)) return "queued";
  if (status?.jobDeploymentStatus !== "Running") return "waiting";
  return status.jobStatus === "RUNNING" ? "running" : "starting";
}
