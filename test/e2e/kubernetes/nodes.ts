import type { KubernetesApi, KubernetesObject } from "./api.ts";
import { waitUntil } from "./ready.ts";

export interface Taint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: "NoSchedule" | "NoExecute" | "PreferNoSchedule";
}

/** The settings of a new node. Quantities have the format of Kubernetes. */
export interface NodeSettings {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** The taints; that of a GPU when absent, if the node has one. */
  readonly taints?: readonly Taint[];
  readonly cpu?: string | undefined;
  readonly memory?: string | undefined;
  readonly gpus?: number | undefined;
  /** Marks a node that the cloud may reclaim at any time, with the labels of both clouds. */
  readonly spot?: boolean | undefined;
  /** The name of the machine in the cloud. */
  readonly providerId?: string;
}

const volumesOfAClass = 8;
const gpuTaint: Taint = { key: "nvidia.com/gpu", value: "present", effect: "NoSchedule" };

/** Creates nodes that KWOK keeps alive, and waits until they accept pods. */
export async function addNodes(api: KubernetesApi, nodes: readonly NodeSettings[]): Promise<void> {
  for (const node of nodes) await api.create(nodeOf(node));
  for (const { name } of nodes)
    await waitUntil(api, { apiVersion: "v1", kind: "Node", metadata: { name } }, takesPods, "ready for pods");
}

export async function removeNodes(api: KubernetesApi, names: readonly string[]): Promise<void> {
  for (const name of names) await api.delete({ apiVersion: "v1", kind: "Node", metadata: { name } });
}

/** Returns the node for the API server. */
export function nodeOf(settings: NodeSettings): KubernetesObject {
  const { name, labels, annotations, cpu = "16", memory = "64Gi", gpus = 0, spot = false, providerId } = settings;
  const { taints = gpus > 0 ? [gpuTaint] : [] } = settings;
  const resources = {
    cpu,
    memory,
    pods: "110",
    "ephemeral-storage": "200Gi",
    ...(gpus > 0 && { "nvidia.com/gpu": String(gpus) }),
  };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": "zone-a",
        ...(spot && { "cloud.google.com/gke-spot": "true", "eks.amazonaws.com/capacityType": "SPOT" }),
        ...labels,
      },
      annotations: { "kwok.x-k8s.io/node": "fake", ...annotations },
    },
    spec: { taints: [...taints], ...(providerId !== undefined && { providerID: providerId }) },
    status: { allocatable: resources, capacity: resources },
  };
}

function takesPods({ spec, status }: KubernetesObject): boolean {
  const isReady = status?.conditions?.some((each: KubernetesObject) => each.type === "Ready" && each.status === "True");
  const taints: readonly { key: string }[] = spec.taints ?? [];
  return isReady && !taints.some(({ key }) => key.startsWith("node.kubernetes.io/"));
}

/** Creates volumes of each class, because KWOK's nodes have no storage driver that would create one for each claim. */
export async function addVolumes(api: KubernetesApi, storageClasses: readonly string[]): Promise<void> {
  const wanted = storageClasses.flatMap((each) => Array.from({ length: volumesOfAClass }, (_, index) => [each, index]));
  for (const [storageClassName, index] of wanted)
    await api.apply(
      {
        apiVersion: "v1",
        kind: "PersistentVolume",
        metadata: { name: `volume-${storageClassName}-${index}` },
        spec: {
          storageClassName,
          capacity: { storage: "100Gi" },
          accessModes: ["ReadWriteOnce"],
          hostPath: { path: "/nowhere" },
          persistentVolumeReclaimPolicy: "Retain",
        },
      } as KubernetesObject,
      { manager: "tiltyard-e2e" },
    );
}

/** Creates a class whose claims may grow. The default class is for claims that specify none. */
export async function addStorageClass(api: KubernetesApi, name: string, isDefault: boolean): Promise<void> {
  await api.apply(
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name, annotations: { "storageclass.kubernetes.io/is-default-class": String(isDefault) } },
      provisioner: "kubernetes.io/no-provisioner",
      volumeBindingMode: "WaitForFirstConsumer",
      allowVolumeExpansion: true,
    } as KubernetesObject,
    { manager: "tiltyard-e2e" },
  );
}
