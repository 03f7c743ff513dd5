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
import { clusterLabel, NamespaceApi, nodeTypeLabel, type RayClusterObject } from "@tiltyard/client";
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

/** The number of RayJobs and of pods that one list reads. A runner starts many times fewer jobs. */
const rayJobsMax = 500;
const podsMax = 500;
/** The number of labels of nodes that the reason of a wait names. */
const selectorsMax = 10;
/** The value of a label with the name of an object. */
const labelValue = /^[a-zA-Z0-9](?:[-_.a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$/;

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

  /**
   * Lists the RayJobs of this runner. Members of the namespace can forge them.
   *
   * @param keep Returns the part of a RayJob to keep in memory.
   * @throws KubernetesError; Error for too many, because an incomplete list would hide attempts.
   */
  async list<Kept>(keep: (rayJob: RayJobObject) => Kept): Promise<readonly Kept[]> {
    const selected = { ...this.#where, labelSelector: selector };
    const list = (page: object) => this.objects.listNamespacedCustomObject({ ...selected, ...page });
    const found = await this.pages("list RayJobs", list, keep, rayJobsMax);
    if (found.length < rayJobsMax) return found;
    const { namespace } = this;
    throw new Error(
      `the namespace ${namespace} has ${rayJobsMax} RayJobs of the runner or more: delete those of no job`,
    );
  }

  /** Returns pods of Ray clusters in a phase, at most `podsMax`. @throws KubernetesError */
  async pods(clusters: readonly string[], phase: "Pending" | "Running"): Promise<readonly V1Pod[]> {
    // KubeRay and members of the namespace write the names, and the API server rejects a selector with any other value.
    const names = clusters.filter((name) => labelValue.test(name));
    if (names.length === 0) return [];
    const selected = {
      namespace: this.namespace,
      labelSelector: `${clusterLabel} in (${names.join()})`,
      fieldSelector: `status.phase=${phase}`,
    };
    return this.pages(
      "list the pods of jobs",
      (page) => this.core.listNamespacedPod({ ...selected, ...page }),
      summaryOf,
      podsMax,
    );
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

/** Returns the part of a pod that explains its wait, with few of the names that its owner chooses. */
function summaryOf({ metadata, spec, status }: V1Pod): V1Pod {
  const { labels = {}, deletionTimestamp } = metadata ?? {};
  const own = Object.entries(labels).filter(([label]) => label === clusterLabel || label === nodeTypeLabel);
  return {
    metadata: { labels: Object.fromEntries(own), ...(deletionTimestamp !== undefined && { deletionTimestamp }) },
    spec: {
      containers: [],
      nodeSelector: Object.fromEntries(Object.entries(spec?.nodeSelector ?? {}).slice(0, selectorsMax)),
    },
    ...(status !== undefined && { status }),
  };
}
