import {
  ApiException,
  CoreV1Api,
  CustomObjectsApi,
  type KubeConfig,
  type KubernetesObject,
  type V1Secret,
} from "@kubernetes/client-node";
import { KubernetesError } from "@tiltyard/client";

const rayJobs = { group: "ray.io", version: "v1", plural: "rayjobs" } as const;
/** What this runner's objects have, and no others. */
export const managedBy = { "app.kubernetes.io/managed-by": "tiltyard-runner" } as const;
const selector = Object.entries(managedBy)
  .map(([label, value]) => `${label}=${value}`)
  .join();

/** What is read of a RayJob. */
export interface RayJobObject extends KubernetesObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly jobDeploymentStatus?: string;
    readonly jobStatus?: string;
    readonly message?: string;
    readonly reason?: string;
  };
}

/** What the runner does on the API server, in one namespace: RayJobs, their keys and their logs. */
export class RayJobApi {
  readonly namespace: string;
  readonly #objects: CustomObjectsApi;
  readonly #core: CoreV1Api;

  constructor(config: KubeConfig, namespace: string) {
    this.namespace = namespace;
    this.#objects = config.makeApiClient(CustomObjectsApi);
    this.#core = config.makeApiClient(CoreV1Api);
  }

  /** @throws KubernetesError */
  async list(): Promise<readonly RayJobObject[]> {
    const { items } = await this.#try<{ readonly items: readonly RayJobObject[] }>("list RayJobs", () =>
      this.#objects.listNamespacedCustomObject({ ...rayJobs, namespace: this.namespace, labelSelector: selector }),
    );
    return items;
  }

  /** @returns undefined when there is one of that name. @throws KubernetesError */
  async create(job: RayJobObject): Promise<RayJobObject | undefined> {
    return this.#unless(409, `create the RayJob ${job.metadata?.name}`, () =>
      this.#objects.createNamespacedCustomObject({ ...rayJobs, namespace: this.namespace, body: job }),
    );
  }

  /** Deletes a RayJob with its cluster and its key; one that is gone is no error. @throws KubernetesError */
  async delete(name: string): Promise<void> {
    await this.#unless(404, `delete the RayJob ${name}`, () =>
      this.#objects.deleteNamespacedCustomObject({
        ...rayJobs,
        namespace: this.namespace,
        name,
        propagationPolicy: "Background",
      }),
    );
  }

  /** @returns undefined when there is one of that name. @throws KubernetesError */
  async createSecret(secret: V1Secret): Promise<V1Secret | undefined> {
    const { namespace } = this;
    return this.#unless(409, `create the Secret ${secret.metadata?.name}`, () =>
      this.#core.createNamespacedSecret({ namespace, body: secret }),
    );
  }

  /** The last lines of the pod that submits a RayJob's command, which prints what that does. @throws KubernetesError */
  async lastLines(rayJob: string, lines: number): Promise<string> {
    const { namespace } = this;
    const { items } = await this.#try(`list the pods of the RayJob ${rayJob}`, () =>
      this.#core.listNamespacedPod({ namespace, labelSelector: `job-name=${rayJob}` }),
    );
    const name = items.at(-1)?.metadata?.name;
    if (name === undefined) return "";
    const log = await this.#unless(404, `read the log of the pod ${name}`, () =>
      this.#core.readNamespacedPodLog({ namespace, name, tailLines: lines }),
    );
    return log ?? "";
  }

  async #try<Result>(what: string, call: () => Promise<Result>): Promise<Result> {
    try {
      return await call();
    } catch (error) {
      throw new KubernetesError(what, error);
    }
  }

  async #unless<Result>(status: number, what: string, call: () => Promise<Result>): Promise<Result | undefined> {
    return this.#try(what, () =>
      call().catch((error) => {
        if (error instanceof ApiException && error.code === status) return undefined;
        throw error;
      }),
    );
  }
}
