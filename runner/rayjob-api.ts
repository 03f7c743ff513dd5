import {
  AuthorizationV1Api,
  type KubeConfig,
  type KubernetesObject,
  PatchStrategy,
  setHeaderOptions,
  type V1ObjectMeta,
  type V1Pod,
  type V1Secret,
} from "@kubernetes/client-node";
import { clusterLabel, NamespaceApi, type RayClusterObject } from "@tiltyard/client";
import { managedByRunner, type runnerRights } from "@tiltyard/platform";
import { documentationPage } from "@tiltyard/protocol";

const rayJobs = { group: "ray.io", version: "v1", plural: "rayjobs" } as const;
const selector = Object.entries(managedByRunner)
  .map(([label, value]) => `${label}=${value}`)
  .join();

/** The fields of a RayJob that the runner reads. */
export interface RayJobObject extends KubernetesObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly jobDeploymentStatus?: string;
    readonly jobStatus?: string;
    readonly message?: string;
    readonly reason?: string;
    readonly jobStatusCheckFailureStartTime?: string;
    readonly rayClusterName?: string;
    readonly rayClusterStatus?: RayClusterObject["status"];
  };
}

/** KubeRay's statuses of an ended RayJob. */
const ended: readonly (string | undefined)[] = ["Complete", "Failed", "ValidationFailed"];

type Right = (typeof runnerRights)[number];

export function hasEnded({ status }: RayJobObject): boolean {
  return ended.includes(status?.jobDeploymentStatus);
}

/** The API of RayJobs and of the Secrets with their keys in one namespace. */
export class RayJobApi extends NamespaceApi {
  readonly #authorization: AuthorizationV1Api;

  constructor(config: KubeConfig, namespace: string) {
    super(config, namespace, `grant it that right in the namespace ${namespace}: ${documentationPage("jobs")}`);
    this.#authorization = config.makeApiClient(AuthorizationV1Api);
  }

  /** Returns the rights that the runner lacks, such as `create secrets`. @throws KubernetesError */
  async missingRights(rights: readonly Right[]): Promise<readonly string[]> {
    const wanted = rights.flatMap(({ apiGroups: [group], resources: [resource], verbs }) =>
      verbs.map((verb) => ({ verb, group, resource })),
    );
    const { namespace } = this;
    const reviews = wanted.map(async ({ verb, group, resource }) => {
      const body = { spec: { resourceAttributes: { namespace, verb, group, resource } } };
      const { status } = await this.try("ask for its own rights", () =>
        this.#authorization.createSelfSubjectAccessReview({ body }),
      );
      return status?.allowed === true ? [] : [`${verb} ${group === "" ? resource : `${resource}.${group}`}`];
    });
    return (await Promise.all(reviews)).flat();
  }

  /** Lists the RayJobs of this runner. @throws KubernetesError */
  async list(): Promise<readonly RayJobObject[]> {
    const { items } = await this.try<{ readonly items: readonly RayJobObject[] }>("list RayJobs", () =>
      this.objects.listNamespacedCustomObject({ ...this.#where, labelSelector: selector }),
    );
    return items;
  }

  /** Returns the pods of Ray clusters, or only the pending ones. @throws KubernetesError */
  async pods(clusters: readonly string[], phase?: "Pending"): Promise<readonly V1Pod[]> {
    if (clusters.length === 0) return [];
    const labelSelector = `${clusterLabel} in (${clusters.join()})`;
    const fieldSelector = phase === undefined ? {} : { fieldSelector: `status.phase=${phase}` };
    const { items } = await this.try("list the pods of jobs", () =>
      this.core.listNamespacedPod({ namespace: this.namespace, labelSelector, ...fieldSelector }),
    );
    return items;
  }

  /** Finds a RayJob. @returns undefined if none has the name. @throws KubernetesError */
  async find(name: string): Promise<RayJobObject | undefined> {
    return this.unless([404], `get the RayJob ${name}`, () =>
      this.objects.getNamespacedCustomObject({ ...this.#where, name }),
    );
  }

  /** Creates a RayJob. @returns undefined if the name is already in use. @throws KubernetesError */
  async create(job: RayJobObject): Promise<RayJobObject | undefined> {
    return this.unless([409], `create the RayJob ${job.metadata?.name}`, () =>
      this.objects.createNamespacedCustomObject({ ...this.#where, body: job }),
    );
  }

  /** Deletes a RayJob with its cluster if it exists. @throws KubernetesError */
  async delete(name: string): Promise<void> {
    await this.unless([404], `delete the RayJob ${name}`, () =>
      this.objects.deleteNamespacedCustomObject({ ...this.#where, name, propagationPolicy: "Background" }),
    );
  }

  /** Creates or updates a Secret. @throws KubernetesError */
  async putSecret(name: string, stringData: Readonly<Record<string, string>>): Promise<void> {
    const { namespace } = this;
    const body = { metadata: { name, labels: managedByRunner }, stringData: { ...stringData } };
    const created = await this.unless([409], `create the Secret ${name}`, () =>
      this.core.createNamespacedSecret({ namespace, body }),
    );
    if (created === undefined) await this.#patchSecret(name, { stringData: body.stringData });
  }

  /** Sets a RayJob as the owner of the Secret with its name, so that both are deleted together. @throws KubernetesError */
  async setSecretOwner(name: string, { uid = "" }: V1ObjectMeta): Promise<void> {
    const owner = { apiVersion: "ray.io/v1", kind: "RayJob", name, uid };
    await this.#patchSecret(name, { metadata: { ownerReferences: [owner] } });
  }

  async #patchSecret(name: string, body: V1Secret): Promise<void> {
    const { namespace } = this;
    await this.try(`patch the Secret ${name}`, () =>
      this.core.patchNamespacedSecret(
        { namespace, name, body },
        setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
      ),
    );
  }

  /** Deletes a Secret if it exists. @throws KubernetesError */
  async deleteSecret(name: string): Promise<void> {
    const { namespace } = this;
    await this.unless([404], `delete the Secret ${name}`, () => this.core.deleteNamespacedSecret({ namespace, name }));
  }

  get #where() {
    return { ...rayJobs, namespace: this.namespace };
  }
}
