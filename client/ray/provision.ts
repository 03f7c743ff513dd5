import { randomUUID } from "node:crypto";
import { hostname, userInfo } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeConfig } from "@kubernetes/client-node";
import {
  type ClusterOptions,
  type ClusterParameters,
  parseParameters,
  tokenOperatorVersionMin,
  withRequestTimeout,
} from "@tiltyard/platform";
import { isTransientStatus, messageOf } from "@tiltyard/protocol";
import pRetry from "p-retry";
import { connect } from "../kubernetes/connect.ts";
import { KubernetesError } from "../kubernetes/kubernetes-error.ts";
import { suppressedError } from "../suppressed-error.ts";
import { type Annotations, type ClusterIdentity, RayClusterApi } from "./cluster-api.ts";
import { type ClusterState, clusterState, formatState } from "./cluster-state.ts";
import { type Job, type JobRequest, JobsApi } from "./jobs.ts";
import { keepLease, leaseEnd } from "./lease.ts";
import { annotations, rayClusterManifest } from "./manifest.ts";
import { type OpenDashboard, openDashboard } from "./open-jobs.ts";

export interface ProvisionOptions {
  /** Receives each change of the state while the cluster starts or stops. */
  readonly onProgress?: (state: ClusterState) => void;
  /** Cancels the creation. The created objects are deleted. */
  readonly signal?: AbortSignal;
  /** Deletes the cluster on SIGINT and SIGTERM before the process exits. */
  readonly handleSignals?: boolean;
  /** Replaces the sign-in by the parameters. */
  readonly kubeConfig?: KubeConfig;
}

/** A failure of a Ray cluster to start. The cluster was deleted again unless it existed before. */
export class ProvisionError extends Error {
  override readonly name = "ProvisionError";
}

const pollMs = 1_000;
const deleteTimeoutMs = 120_000;
/** The time in which the creation is retried if the API server does not respond or is unavailable. */
const createTimeoutMs = 30_000;

/** A Ray cluster with the lifetime of its scope: `await using cluster = await provisionRayCluster(...)`. */
export class RayCluster implements AsyncDisposable {
  readonly name: string;
  readonly namespace: string;
  /** The URL of Ray's dashboard and its Jobs API. */
  readonly dashboardUrl: string;
  readonly #jobs: JobsApi;
  readonly #close: () => Promise<void>;
  readonly #detach: (until: Date) => Promise<void>;
  readonly #now: () => Promise<Date>;
  #closed: Promise<void> | undefined;

  constructor(parts: {
    readonly name: string;
    readonly namespace: string;
    readonly dashboardUrl: string;
    readonly token: string | undefined;
    readonly close: () => Promise<void>;
    readonly detach: (until: Date) => Promise<void>;
    readonly now: () => Promise<Date>;
  }) {
    this.name = parts.name;
    this.namespace = parts.namespace;
    this.dashboardUrl = parts.dashboardUrl;
    this.#jobs = new JobsApi(parts.dashboardUrl, parts.token);
    this.#close = parts.close;
    this.#detach = parts.detach;
    this.#now = parts.now;
  }

  /** Submits a job. @throws JobError */
  submit(request: JobRequest): Promise<Job> {
    return this.#jobs.submit(request);
  }

  /** Returns the API of all jobs of the cluster. */
  get jobs(): JobsApi {
    return this.#jobs;
  }

  /** Deletes the cluster and waits for the deletion. Further calls wait for the same deletion. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Returns the time by the clock of the API server, which leases use. */
  now(): Promise<Date> {
    return this.#now();
  }

  /**
   * Detaches from the cluster, which then exists until a client deletes it or the reaper does after a time.
   *
   * @param until The end of the lease by the clock of the API server.
   */
  detach(until: Date): Promise<void> {
    this.#closed ??= this.#detach(until);
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    // The caller of an earlier call has received its error.
    return this.#closed?.catch(() => {}) ?? this.close();
  }
}

/**
 * Creates a Ray cluster and waits for its head and the minimum number of workers. The cluster is deleted at the end of
 * its scope, also after errors and on SIGINT and SIGTERM. If this process is killed, the lease expires and
 * `reapRayClusters` deletes the cluster.
 *
 * @throws ParameterError, ConnectError, KubernetesError, ProvisionError; one of them within a SuppressedError if the
 * created objects could not be deleted either.
 */
export async function provisionRayCluster(
  options: ClusterOptions,
  { onProgress = () => {}, signal, handleSignals = true, kubeConfig }: ProvisionOptions = {},
): Promise<RayCluster> {
  const parameters = parseParameters(options);
  const config = kubeConfig === undefined ? await connect(parameters) : withRequestTimeout(kubeConfig);
  const api = new RayClusterApi(config, parameters.namespace);
  const { name } = parameters;
  const owner = ownerName();

  signal?.throwIfAborted();
  const { identity, before } = await createOrAdopt(api, parameters, owner, signal);
  const lease = keepLease(api, identity, parameters.leaseSeconds);
  let dashboard: OpenDashboard | undefined;
  const stopUse = async () => {
    release();
    lease.stop();
    await dashboard?.[Symbol.asyncDispose]();
  };
  const close = async () => {
    await stopUse();
    await remove(api, identity);
  };
  const detach = async (until: Date) => {
    await stopUse();
    if (!(await api.renewLease(identity, until)))
      throw new ProvisionError(`the RayCluster ${name} was deleted by another client`);
  };
  const restore = async (values: Annotations) => {
    await stopUse();
    await api.annotate(identity, values);
  };
  let cleanUp = before === undefined ? close : () => restore(before);
  const release = handleSignals ? onSignals(() => cleanUp()) : () => {};

  try {
    await waitUntilReady(api, identity, parameters, onProgress, signal);
    const token = parameters.auth === "token" ? await api.authToken(name) : undefined;
    if (parameters.auth === "token" && token === undefined)
      throw new ProvisionError(
        `the RayCluster ${name} requires no token: its KubeRay operator is older than ` +
          `${tokenOperatorVersionMin.join(".")}, or another client created it. Upgrade the operator, or set auth: none`,
      );
    dashboard = await openDashboard(config, api, name, parameters.usePortforwarding);
    cleanUp = close;
    const now = () => api.now();
    return new RayCluster({ name, namespace: api.namespace, dashboardUrl: dashboard.url, token, close, detach, now });
  } catch (error) {
    await cleanUp().catch((cause) => {
      throw suppressedError(cause, error, `${messageOf(error)}; and then: ${messageOf(cause)}`);
    });
    throw error;
  }
}

/** Creates or adopts a cluster. @returns The cluster, with its former lease and owner if it existed before. */
async function createOrAdopt(
  api: RayClusterApi,
  parameters: ClusterParameters,
  owner: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly identity: ClusterIdentity; readonly before?: Annotations }> {
  const { name, leaseSeconds, adopt } = parameters;
  try {
    return { identity: await create(api, parameters, { owner, creation: randomUUID() }, signal) };
  } catch (error) {
    if (!(error instanceof KubernetesError) || error.status !== 409) throw error;
    const { metadata } = (await api.find(name)) ?? {};
    const theirs = metadata?.annotations?.[annotations.owner];
    const identity = { name, uid: metadata?.uid };
    const adoptLease = async () => api.renewLease(identity, await leaseEnd(api, leaseSeconds), owner);
    if (adopt && metadata?.deletionTimestamp === undefined && (await adoptLease())) {
      const leaseUntil = metadata?.annotations?.[annotations.leaseUntil];
      const before = { [annotations.owner]: theirs ?? null, [annotations.leaseUntil]: leaseUntil ?? null };
      return { identity, before };
    }
    const deletion = metadata?.deletionTimestamp === undefined ? "" : ", and is being deleted";
    throw new ProvisionError(
      `a RayCluster ${name} of ${theirs ?? "another client"} exists in ${api.namespace}${deletion}: ` +
        "use another name, or adopt it (adopt: true)",
      { cause: error },
    );
  }
}

/**
 * Creates a cluster once, even if the response is lost: the request is retried, and a conflict with the cluster that it
 * created itself is a success.
 */
async function create(
  api: RayClusterApi,
  parameters: ClusterParameters,
  by: Omit<Parameters<typeof rayClusterManifest>[1], "leaseUntil">,
  signal: AbortSignal | undefined,
): Promise<ClusterIdentity> {
  const { name, timeoutSeconds, leaseSeconds } = parameters;
  const deadline = Date.now() + Math.min(createTimeoutMs, timeoutSeconds * 1000);
  const findOwn = async (): Promise<ClusterIdentity | undefined> => {
    const { metadata } = (await api.find(name)) ?? {};
    return metadata?.annotations?.[annotations.creation] === by.creation ? { name, uid: metadata.uid } : undefined;
  };
  const createOnce = async (): Promise<ClusterIdentity> => {
    try {
      const leaseUntil = await leaseEnd(api, leaseSeconds, `create the RayCluster ${name}`);
      const { metadata } = await api.create(rayClusterManifest(parameters, { ...by, leaseUntil }));
      return { name, uid: metadata?.uid };
    } catch (error) {
      const own = error instanceof KubernetesError && error.status === 409 ? await findOwn() : undefined;
      if (own === undefined) throw error;
      return own;
    }
  };
  try {
    return await patiently(createOnce, deadline, signal);
  } catch (error) {
    if (error instanceof KubernetesError && !isTransient(error)) throw error;
    // The cluster may exist nevertheless. If the API server still does not respond, the lease expires.
    await findOwn()
      .then((own) => own && api.delete(own))
      .catch(() => {});
    throw error;
  }
}

async function waitUntilReady(
  api: RayClusterApi,
  { name, uid }: ClusterIdentity,
  { timeoutSeconds, workerGroups }: ClusterParameters,
  onProgress: (state: ClusterState) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const wanted = workerGroups.reduce((sum, worker) => sum + worker.minReplicas, 1);
  const deadline = Date.now() + timeoutSeconds * 1000;
  let reported = "";
  for (;;) {
    signal?.throwIfAborted();
    const look = () => Promise.all([api.find(name), api.pods(name), api.events(name)]);
    const [cluster, pods, events] = await patiently(look, deadline, signal);
    if (cluster === undefined || cluster.metadata?.uid !== uid)
      throw new ProvisionError(`the RayCluster ${name} was deleted during its start`);
    const state = clusterState(cluster, wanted, pods, events);
    if (formatState(state) !== reported) {
      reported = formatState(state);
      onProgress(state);
    }
    if (state.isReady) return;
    if (Date.now() >= deadline)
      throw new ProvisionError(`the RayCluster ${name} was not ready after ${timeoutSeconds} s: ${reported}`);
    await sleep(pollMs, undefined, { signal });
  }
}

/** Deletes a cluster and waits until the cluster and its pods no longer exist. */
async function remove(api: RayClusterApi, identity: ClusterIdentity): Promise<void> {
  const { name, uid } = identity;
  const deadline = Date.now() + deleteTimeoutMs;
  await patiently(() => api.delete(identity), deadline);
  for (;;) {
    const [cluster, pods] = await patiently(() => Promise.all([api.find(name), api.pods(name)]), deadline);
    // Another cluster can have the name only after this one and its pods no longer exist.
    const isAnother = cluster !== undefined && cluster.metadata?.uid !== uid;
    if (isAnother || (cluster === undefined && pods.length === 0)) return;
    if (Date.now() >= deadline)
      throw new ProvisionError(
        `the RayCluster ${name} was deleted, but it or its pods still exist after ${deleteTimeoutMs / 1000} s`,
      );
    await sleep(pollMs);
  }
}

/** Retries an idempotent call while the API server is unavailable. */
function patiently<Result>(work: () => Promise<Result>, deadline: number, signal?: AbortSignal): Promise<Result> {
  return pRetry(work, {
    retries: Infinity,
    factor: 1,
    minTimeout: pollMs,
    maxRetryTime: Math.max(deadline - pollMs - Date.now(), 0),
    ...(signal !== undefined && { signal }),
    shouldRetry: ({ error }) => isTransient(error),
  });
}

/** Reports whether the API server was unavailable or did not respond, in which case the request may have succeeded. */
function isTransient(error: unknown): boolean {
  return error instanceof KubernetesError && isTransientStatus(error.status);
}

/**
 * Runs cleanup when the process receives a signal, and then lets the process exit.
 *
 * @returns A function that removes the handlers.
 */
function onSignals(work: () => Promise<void>): () => void {
  const handlers = (["SIGINT", "SIGTERM"] as const).map((signal) => {
    const handler = () => {
      work()
        .catch((error) => process.stderr.write(`${messageOf(error)}\n`))
        .finally(() => process.kill(process.pid, signal));
    };
    process.once(signal, handler);
    return () => process.off(signal, handler);
  });
  return () => {
    for (const remove of handlers) remove();
  };
}

/** Returns the owner of clusters of this process: a user or a program, and its host. */
function ownerName(): string {
  return `${userName()}@${hostname()} (process ${process.pid})`;
}

/** Returns the name of the user, or its number in containers where the user has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}
