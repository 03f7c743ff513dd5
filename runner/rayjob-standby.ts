import { createHash, randomUUID } from "node:crypto";
import type { PlatformAttempt } from "./platform.ts";
import { hasEnded, type RayJobApi, type RayJobObject } from "./rayjob-api.ts";

/** The annotation of a RayJob that waits for an attempt. Its value is the digest of its environment. */
const annotation = "tiltyard.dev/standby";
/** The annotation of pods. After each change, the kubelet updates the Secret in the pod at once. */
const refreshAnnotation = "tiltyard.dev/refresh";
/** The passes in which the annotation is changed. The kubelet may see the first change before it sees the Secret. */
const refreshPasses = 5;
/** The time after which the process of a standby exits by itself, because no runner has deleted it. */
const graceSeconds = 120;

/** Returns the RayJob of an attempt or a standby in one environment. */
export type RayJobIn = (parts: {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly entrypoint: string;
  /** The job receives its key while it runs. */
  readonly waitsForKey: boolean;
}) => RayJobObject;

/** The assignment of an attempt to a standby. */
export interface Assignment {
  readonly name: string;
  readonly rayJobIn: RayJobIn;
  /** The annotations by which the RayJob is found as that of the attempt. */
  readonly annotations: Readonly<Record<string, string>>;
  /** The content of the Secret. */
  readonly secret: Readonly<Record<string, string>>;
}

/**
 * Keeps one RayJob of a namespace ready for the next attempt: its driver has Ray, has imported the packages, and waits
 * for a Secret. It has no key before it is assigned, and serves one attempt only. The API server has all shared state:
 * runners assign or delete a standby only if it has not changed.
 */
export class RayJobStandby {
  readonly #api: RayJobApi;
  readonly #idleMs: number;
  /** The standbys of the latest list. */
  #waiting: readonly RayJobObject[] = [];
  /** The environment of the last attempt, and the time at which an attempt was last seen. */
  #last: { readonly rayJobIn: RayJobIn; at: number } | undefined;
  /** The remaining refreshes of Ray clusters by name. */
  readonly #refreshes = new Map<string, number>();

  /** @param idleMs The time in which a standby waits; 0 keeps none and deletes those of earlier runners. */
  constructor(api: RayJobApi, idleMs: number) {
    [this.#api, this.#idleMs] = [api, idleMs];
  }

  /** Records the standbys among the RayJobs of the namespace, in an order that all runners agree on. */
  observe(rayJobs: readonly RayJobObject[]): void {
    this.#waiting = rayJobs
      .filter(
        ({ metadata }) => metadata?.annotations?.[annotation] !== undefined && metadata.deletionTimestamp === undefined,
      )
      .toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
  }

  /** Records the environment of an attempt, which is that of the next standby. */
  expect(rayJobIn: RayJobIn): void {
    this.#last = { rayJobIn, at: performance.now() };
  }

  /** Returns the name of a standby with an environment. */
  find(rayJobIn: RayJobIn): string | undefined {
    if (this.#idleMs === 0) return undefined;
    const digest = digestOf(rayJobIn);
    const found = this.#waiting.find((each) => each.metadata?.annotations?.[annotation] === digest && !hasEnded(each));
    return found === undefined ? undefined : nameOf(found);
  }

  /** Assigns an attempt to a standby. @returns False if the standby has ended or has another attempt. */
  async assign({ name, rayJobIn, annotations, secret }: Assignment): Promise<boolean> {
    this.#waiting = this.#waiting.filter((each) => nameOf(each) !== name);
    const taken = await this.#api.exchangeAnnotation(name, [annotation, digestOf(rayJobIn)], annotations);
    if (taken === undefined) return false;
    try {
      await this.#api.putSecret(name, secret);
    } catch (error) {
      await this.#api.delete(name).catch(() => undefined);
      throw error;
    }
    const { metadata, status } = taken;
    if (status?.rayClusterName) this.#refreshes.set(status.rayClusterName, refreshPasses);
    await this.#refresh();
    if (metadata !== undefined) await this.#api.setSecretOwner(name, metadata);
    return true;
  }

  /**
   * Creates a standby if no attempt of the namespace is open, and deletes it when it has waited long enough or holds
   * resources that an attempt waits for.
   *
   * @param attempts All attempts of the runner.
   * @param isBusy An attempt of this namespace is open.
   */
  async prepare(attempts: readonly PlatformAttempt[], isBusy: boolean): Promise<void> {
    await this.#refresh();
    if (isBusy && this.#last !== undefined) this.#last.at = performance.now();
    const isNeeded = attempts.some(({ lack }) => lack !== undefined);
    const mayWait = this.#idleMs > 0 && !isBusy && !isNeeded;
    // Another one would end in the same way.
    if (this.#waiting.some(hasEnded)) this.#last = undefined;
    const [first] = this.#waiting;
    await this.#delete((each) => !mayWait || hasEnded(each) || ageMs(each) >= this.#idleMs || each !== first);
    if (!mayWait || this.#waiting.length > 0 || this.#last === undefined) return;
    if (performance.now() - this.#last.at < this.#idleMs) await this.#create(this.#last.rayJobIn);
    else this.#last = undefined;
  }

  /** Deletes the standbys of the namespace, so that an attempt in another environment gets their resources. */
  async deleteAll(): Promise<void> {
    await this.#delete(() => true);
  }

  async #delete(isUnneeded: (standby: RayJobObject) => boolean): Promise<void> {
    for (const each of this.#waiting.filter(isUnneeded)) await this.#api.deleteUnchanged(each);
  }

  async #create(rayJobIn: RayJobIn): Promise<void> {
    const seconds = Math.ceil(this.#idleMs / 1_000) + graceSeconds;
    const rayJob = rayJobIn({
      name: `standby-${randomUUID()}`,
      annotations: { [annotation]: digestOf(rayJobIn) },
      entrypoint: `exec python -m tiltyard.job.standby "\${TILTYARD_API_KEY_FILE%/*}" --idle-seconds ${seconds}`,
      waitsForKey: true,
    });
    try {
      await this.#api.create(rayJob);
      this.#waiting = [rayJob];
    } catch {
      // A rejection, such as one by a quota, would follow again. The next job shows it.
      this.#last = undefined;
    }
  }

  /** Annotates the pods of assigned standbys. Without it, the kubelets update their Secrets each minute. */
  async #refresh(): Promise<void> {
    const clusters = [...this.#refreshes.keys()];
    for (const [cluster, passes] of this.#refreshes)
      if (passes > 1) this.#refreshes.set(cluster, passes - 1);
      else this.#refreshes.delete(cluster);
    const annotations = { [refreshAnnotation]: randomUUID() };
    const pods = await this.#api.pods(clusters);
    await Promise.all(pods.map(({ metadata }) => this.#api.annotatePod(metadata?.name ?? "", annotations)));
  }
}

function digestOf(rayJobIn: RayJobIn): string {
  const environment = JSON.stringify(rayJobIn({ name: "", annotations: {}, entrypoint: "", waitsForKey: true }));
  return createHash("sha256").update(environment).digest("hex").slice(0, 32);
}

function nameOf({ metadata }: RayJobObject): string {
  return metadata?.name ?? "";
}

function ageMs({ metadata }: RayJobObject): number {
  return Date.now() - new Date(metadata?.creationTimestamp ?? Date.now()).getTime();
}
