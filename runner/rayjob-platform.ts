import { type ClusterParameters, rayClusterSpec } from "@tiltyard/client";
import { parseIdentifier } from "@tiltyard/protocol";
import type { OpenJob } from "./jobs.ts";
import { type AttemptState, NeedsError, type Platform, type PlatformAttempt, type StartRequest } from "./platform.ts";
import { managedBy, type RayJobApi, type RayJobObject } from "./rayjob-api.ts";

const annotations = { job: "tiltyard.dev/job", attempt: "tiltyard.dev/attempt" } as const;
/** Kueue admits what has this label: it takes `suspend` away when there is room. */
const queueLabel = "kueue.x-k8s.io/queue-name";
/** How long an attempt that has ended can be looked at, in seconds. */
const keptSeconds = 600;
const logLines = 40;
const defaultTemplate = "default";

/** KubeRay's words for how a RayJob is, apart from those of one that has not begun. */
const states: Readonly<Record<string, AttemptState>> = {
  Running: "running",
  Complete: "ended",
  Failed: "ended",
  ValidationFailed: "ended",
};

export interface RayJobOptions {
  readonly api: RayJobApi;
  /** Ray clusters by the name that a request's `cluster` has. */
  readonly templates: Readonly<Record<string, ClusterParameters>>;
  /** Kueue's queue; undefined where there is none. */
  readonly queue: string | undefined;
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
    return (await this.#options.api.list()).flatMap(toAttempt);
  }

  async start({ job, number, apiKey }: StartRequest): Promise<void> {
    const { api, catalogUrl } = this.#options;
    const template = this.#templateOf(job);
    const name = nameOf(job.id, number);
    const cluster = { ...template, catalogUrl, catalogKeySecret: name };
    const created = await api.create(this.#rayJob(job, number, cluster));
    // Pods wait for the key. The RayJob owns it, so that it goes when the RayJob does.
    const uid = created?.metadata?.uid;
    if (uid === undefined) return;
    try {
      await api.createSecret({
        metadata: {
          name,
          labels: managedBy,
          ownerReferences: [{ apiVersion: "ray.io/v1", kind: "RayJob", name, uid }],
        },
        stringData: { apiKey },
      });
    } catch (error) {
      // Without its key it would wait for ever.
      await api.delete(name);
      throw error;
    }
  }

  async stop({ jobId, number }: PlatformAttempt): Promise<void> {
    await this.#options.api.delete(nameOf(jobId, number));
  }

  async lastLines({ jobId, number }: PlatformAttempt): Promise<string> {
    return (await this.#options.api.lastLines(nameOf(jobId, number), logLines)).trimEnd();
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

  #rayJob({ id }: OpenJob, number: number, cluster: ClusterParameters): RayJobObject {
    const { queue, leaseSeconds } = this.#options;
    return {
      apiVersion: "ray.io/v1",
      kind: "RayJob",
      metadata: {
        name: nameOf(id, number),
        labels: { ...managedBy, ...(queue !== undefined && { [queueLabel]: queue }) },
        annotations: { [annotations.job]: id, [annotations.attempt]: String(number) },
      },
      spec: {
        entrypoint: `python -m tiltyard.job '${id}' --attempt ${number} --lease-seconds ${leaseSeconds}`,
        submissionMode: "K8sJobMode",
        suspend: queue !== undefined,
        // The runner attempts it again, which knows of heartbeats, too.
        backoffLimit: 0,
        shutdownAfterJobFinishes: true,
        ttlSecondsAfterFinished: keptSeconds,
        rayClusterSpec: rayClusterSpec({ ...cluster, env: { ...cluster.env, TILTYARD_RAY_AUTOSCALES: "1" } }),
      },
    };
  }
}

/** KubeRay takes 47 characters, and ids of jobs are unique without their namespaces. */
function nameOf(jobId: string, number: number): string {
  return `job-${parseIdentifier(jobId).at(-1)}-${number}`;
}

function toAttempt({ metadata, status }: RayJobObject): PlatformAttempt[] {
  const jobId = metadata?.annotations?.[annotations.job];
  const number = Number(metadata?.annotations?.[annotations.attempt]);
  // One that is being deleted was stopped.
  if (jobId === undefined || !Number.isSafeInteger(number) || metadata?.deletionTimestamp !== undefined) return [];
  const state = states[status?.jobDeploymentStatus ?? ""] ?? "waiting";
  return [{ jobId, number, state, message: status?.message ?? status?.reason }];
}
