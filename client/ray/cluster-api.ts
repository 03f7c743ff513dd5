import {
  type CoreV1Event,
  type KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  type V1Pod,
} from "@kubernetes/client-node";
import { NamespaceApi } from "../kubernetes/namespace-api.ts";
import { annotations, clusterLabel, managedBy, nodeTypeLabel, type RayClusterObject, rayClusters } from "./manifest.ts";

/** The maximum number of clusters in a list. */
const clustersMax = 500;

/** The identity of a RayCluster, which excludes later ones with the same name. */
export interface ClusterIdentity {
  readonly name: string;
  /** The uid; any cluster with the name when absent. */
  readonly uid?: string | undefined;
}

/** The annotations to set; null removes one. */
export type Annotations = Readonly<Record<string, string | null>>;

/** The API of the Ray clusters in one namespace. */
export class RayClusterApi extends NamespaceApi {
  constructor(config: KubeConfig, namespace: string) {
    super(config, namespace, "request membership in clientPrincipals of the stack");
  }

  /** Creates a cluster. @throws KubernetesError with the status 409 if the name is already in use. */
  async create(cluster: RayClusterObject): Promise<RayClusterObject> {
    return this.try(`create the RayCluster ${cluster.metadata?.name}`, () =>
      this.objects.createNamespacedCustomObject({ ...this.#where, body: cluster, fieldManager: "tiltyard" }),
    );
  }

  /** Finds a cluster. @returns undefined if none has the name. */
  async find(name: string): Promise<RayClusterObject | undefined> {
    return this.unless([404], `get the RayCluster ${name}`, () =>
      this.objects.getNamespacedCustomObject({ ...this.#where, name }),
    );
  }

  /** Lists the clusters that this client created for any user, at most `clustersMax`, without their specifications. */
  async list(): Promise<readonly RayClusterObject[]> {
    const [[label, value] = []] = Object.entries(managedBy);
    return this.pages(
      "list RayClusters",
      (page) =>
        this.objects.listNamespacedCustomObject({ ...this.#where, labelSelector: `${label}=${value}`, ...page }),
      ({ metadata, status }: RayClusterObject) => ({
        metadata: { ...metadata, managedFields: [] },
        ...(status?.state !== undefined && { status: { state: status.state } }),
      }),
      clustersMax,
    );
  }

  /**
   * Returns the time of the API server in whole seconds. All leases use this one clock, because the clocks of owners
   * and reapers differ.
   *
   * @param purpose The failed action in error messages.
   */
  async now(purpose = "read the time of the API server"): Promise<Date> {
    return this.try(purpose, async () => {
      const { headers } = await this.objects.listNamespacedCustomObjectWithHttpInfo({ ...this.#where, limit: 1 });
      // Every response of an HTTP server with a clock contains the time (RFC 9110, 6.6.1).
      const millis = Date.parse(headers.date ?? "");
      if (Number.isNaN(millis)) throw new Error("its response has no Date header");
      return new Date(millis);
    });
  }

  /**
   * Writes the owner and the end of the lease by the clock of the API server.
   *
   * @returns False if the cluster no longer exists.
   */
  async renewLease(cluster: ClusterIdentity, until: Date, owner?: string): Promise<boolean> {
    const lease = { [annotations.leaseUntil]: until.toISOString() };
    return this.annotate(cluster, owner === undefined ? lease : { ...lease, [annotations.owner]: owner });
  }

  /** Sets annotations. @returns False if the cluster no longer exists. */
  async annotate({ name, uid }: ClusterIdentity, values: Annotations): Promise<boolean> {
    const body = { metadata: { ...(uid !== undefined && { uid }), annotations: values } };
    const changed = await this.unless(
      // The API server responds with 409 or 422 if the uid of the object differs.
      uid === undefined ? [404] : [404, 409, 422],
      `renew the lease of the RayCluster ${name}`,
      () =>
        this.objects.patchNamespacedCustomObject(
          { ...this.#where, name, body },
          setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
        ),
    );
    return changed !== undefined;
  }

  /**
   * Deletes a cluster, its pods first.
   *
   * @param cluster The cluster. With a resource version, it is deleted only if it has not changed.
   * @returns False if the cluster no longer exists.
   */
  async delete(cluster: ClusterIdentity & { readonly resourceVersion?: string | undefined }): Promise<boolean> {
    const { name, uid, resourceVersion } = cluster;
    const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
    const deleted = await this.unless(
      Object.keys(preconditions).length > 0 ? [404, 409] : [404],
      `delete the RayCluster ${name}`,
      () =>
        this.objects.deleteNamespacedCustomObject({
          ...this.#where,
          name,
          propagationPolicy: "Foreground",
          body: { preconditions },
        }),
    );
    return deleted !== undefined;
  }

  async pods(name: string): Promise<readonly V1Pod[]> {
    const { items } = await this.try(`list the pods of the RayCluster ${name}`, () =>
      this.core.listNamespacedPod({ namespace: this.namespace, labelSelector: `${clusterLabel}=${name}` }),
    );
    return items;
  }

  async events(name: string): Promise<readonly CoreV1Event[]> {
    const fieldSelector = `involvedObject.kind=RayCluster,involvedObject.name=${name}`;
    const { items } = await this.try(`list the events of the RayCluster ${name}`, () =>
      this.core.listNamespacedEvent({ namespace: this.namespace, fieldSelector }),
    );
    return items;
  }

  /** Returns the name of the running head; undefined without one. */
  async headPod(name: string): Promise<string | undefined> {
    const pods = await this.pods(name);
    const head = pods.find(
      ({ metadata, status }) =>
        metadata?.labels?.[nodeTypeLabel] === "head" &&
        metadata.deletionTimestamp === undefined &&
        status?.phase === "Running",
    );
    return head?.metadata?.name;
  }

  /**
   * Returns the token that a cluster requires; undefined if it requires none.
   *
   * @throws KubernetesError if it requires one but has none, because any pod that reaches its head could then run code
   * there.
   */
  async authToken(name: string): Promise<string | undefined> {
    const cluster = await this.find(name);
    const auth = (cluster?.spec?.authOptions ?? {}) as { readonly mode?: string; readonly secretName?: string };
    if (auth.mode !== "token") return undefined;
    const secret = await this.try(`read the token of the RayCluster ${name}`, () =>
      this.core.readNamespacedSecret({ namespace: this.namespace, name: auth.secretName ?? name }),
    );
    const encoded = secret.data?.auth_token;
    return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString();
  }

  get #where() {
    return { ...rayClusters, namespace: this.namespace };
  }
}
