import type {
  KubernetesObject,
  V1Affinity,
  V1Container,
  V1EnvVar,
  V1PodTemplateSpec,
  V1Toleration,
  V1TopologySpreadConstraint,
} from "@kubernetes/client-node";
import {
  type ClusterParameters,
  gpuResource,
  rayFolder,
  rayGpuImage,
  rayImage,
  rayLogs,
  sharedMemoryFolder,
} from "@tiltyard/platform";
import { version } from "../version.ts";

/** The annotations by which the cluster autoscaler and Karpenter do not remove the node of a pod. */
const keptByAutoscalers = {
  "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
  "karpenter.sh/do-not-disrupt": "true",
} as const;

/** The resource of RayClusters on the API server. */
export const rayClusters = { group: "ray.io", version: "v1", plural: "rayclusters" } as const;

/** The annotations that this client sets on its clusters. */
export const annotations = {
  /** The owner: a user or a program, and its host. */
  owner: "tiltyard.dev/owner",
  /** The end of the lease by the clock of the API server in ISO 8601. The reaper deletes the cluster afterwards. */
  leaseUntil: "tiltyard.dev/lease-until",
  /** The id of the request that created the cluster, by which a client whose response was lost finds its cluster. */
  creation: "tiltyard.dev/creation",
} as const;
export const managedBy = { "app.kubernetes.io/managed-by": "tiltyard" } as const;

/** KubeRay's label on the pods of a cluster. */
export const clusterLabel = "ray.io/cluster";
export const nodeTypeLabel = "ray.io/node-type";
const groupLabel = "ray.io/group";
export const dashboardPort = 8265;

/** A key of a Secret in the namespace of the pods. */
export interface SecretKey {
  readonly name: string;
  readonly key: string;
}

/** The fields of a RayCluster that this client reads. */
export interface RayClusterObject extends KubernetesObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly state?: string;
    readonly reason?: string;
    readonly conditions?: readonly { type: string; status: string; reason?: string; message?: string }[];
  };
}

const userId = 1000;
/**
 * The volume of Ray's files. KubeRay mounts a volume of this name in the container of its autoscaler, whose log the
 * dashboard then shows.
 */
const rayVolume = "ray-logs";
/** The grace period in which the tasks of a deleted pod can move to other pods. */
const stopSeconds = 60;

/**
 * Returns the RayCluster for KubeRay: a head that schedules but does no work itself, and workers that scale, all on
 * nodes of their role.
 */
export function rayClusterManifest(
  parameters: ClusterParameters,
  by: { readonly owner: string; readonly leaseUntil: Date; readonly creation: string },
): RayClusterObject {
  const { name, namespace } = parameters;
  return {
    apiVersion: `${rayClusters.group}/${rayClusters.version}`,
    kind: "RayCluster",
    metadata: {
      name,
      namespace,
      labels: { ...managedBy, "app.kubernetes.io/version": version },
      annotations: {
        [annotations.owner]: by.owner,
        [annotations.leaseUntil]: by.leaseUntil.toISOString(),
        [annotations.creation]: by.creation,
      },
    },
    spec: rayClusterSpec(parameters),
  };
}

/**
 * Returns the specification of a cluster, for a RayCluster or for the cluster of a RayJob.
 *
 * @param options.isOfOneJob A failed head is not restarted, because the only job is lost with it.
 * @param options.secretEnv The variables of all pods whose values are keys of Secrets of the namespace.
 */
export function rayClusterSpec(
  parameters: ClusterParameters,
  {
    isOfOneJob = false,
    secretEnv = {},
  }: {
    readonly isOfOneJob?: boolean;
    readonly secretEnv?: Readonly<Record<string, SecretKey>>;
  } = {},
): Readonly<Record<string, unknown>> {
  const { headGroup, workerGroups, gcsFaultTolerance } = parameters;
  return {
    rayVersion: parameters.rayVersion,
    enableInTreeAutoscaling: true,
    autoscalerOptions: {
      version: "v2",
      idleTimeoutSeconds: Math.min(...workerGroups.map((worker) => worker.idleTimeoutSeconds), 60),
      resources: { requests: { cpu: "200m", memory: "512Mi" }, limits: { cpu: "200m", memory: "512Mi" } },
    },
    ...(parameters.auth === "token" && { authOptions: { mode: "token" } }),
    ...(gcsFaultTolerance && {
      gcsFaultToleranceOptions: {
        redisAddress: gcsFaultTolerance.redisAddress,
        ...(gcsFaultTolerance.redisPasswordSecret !== undefined && {
          redisPassword: {
            valueFrom: { secretKeyRef: { name: gcsFaultTolerance.redisPasswordSecret, key: "password" } },
          },
        }),
      },
    }),
    headGroupSpec: {
      serviceType: "ClusterIP",
      rayStartParams: { "dashboard-host": "0.0.0.0", "num-cpus": "0" },
      template: podTemplate(parameters, { ...headGroup, kind: "head", numGpus: 0, isOfOneJob, secretEnv }),
    },
    workerGroupSpecs: workerGroups.map((worker) => ({
      groupName: worker.name,
      replicas: worker.minReplicas,
      minReplicas: worker.minReplicas,
      maxReplicas: worker.maxReplicas,
      idleTimeoutSeconds: worker.idleTimeoutSeconds,
      rayStartParams: {},
      template: podTemplate(parameters, { ...worker, kind: "worker", isOfOneJob, secretEnv }),
    })),
  };
}

interface PodGroup {
  readonly kind: "head" | "worker";
  readonly numCpus: number;
  readonly memory: string;
  readonly numGpus: number;
  readonly serviceAccount?: string | undefined;
  readonly nodeSelector?: Readonly<Record<string, string>> | undefined;
  readonly image?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly priorityClassName?: string | undefined;
  readonly imagePullSecrets?: readonly string[] | undefined;
  readonly ephemeralStorage?: string | undefined;
  readonly tolerations: readonly V1Toleration[];
  readonly affinity?: V1Affinity | undefined;
  readonly topologySpreadConstraints: readonly V1TopologySpreadConstraint[];
  readonly isOfOneJob: boolean;
  readonly secretEnv: Readonly<Record<string, SecretKey>>;
}

function podTemplate(parameters: ClusterParameters, group: PodGroup): V1PodTemplateSpec {
  const { nodeSelectors } = parameters;
  const isHead = group.kind === "head";
  const selector = isHead ? nodeSelectors.head : group.numGpus > 0 ? nodeSelectors.workerGpu : nodeSelectors.workerCpu;
  const nodes = group.nodeSelector ?? selector;
  const priorityClassName = group.priorityClassName ?? (isHead ? parameters.headPriorityClass : undefined);
  const claims = claimsOf(parameters);
  const { imagePullSecrets = parameters.imagePullSecrets, topologySpreadConstraints, affinity } = group;
  return {
    metadata: {
      labels: { ...managedBy },
      // The whole cluster ends with its head, so the autoscaler must not evict it.
      annotations: isHead ? keptByAutoscalers : {},
    },
    spec: {
      serviceAccountName: group.serviceAccount ?? parameters.serviceAccount,
      // Only the autoscaler on the head calls the API server. Identities of clouds have tokens of their own.
      ...(!isHead && { automountServiceAccountToken: false }),
      nodeSelector: { ...nodes },
      ...(affinity !== undefined && { affinity }),
      ...(topologySpreadConstraints.length > 0 && {
        topologySpreadConstraints: topologySpreadConstraints.map((each) => ({ ...podsOfGroup(group), ...each })),
      }),
      ...(imagePullSecrets.length > 0 && { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }),
      ...(isHead && group.isOfOneJob && { restartPolicy: "Never" }),
      ...(priorityClassName !== undefined && { priorityClassName }),
      terminationGracePeriodSeconds: stopSeconds,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: userId,
        fsGroup: userId,
        seccompProfile: { type: "RuntimeDefault" },
      },
      tolerations: [...tolerationsOf(nodes, group), ...group.tolerations],
      ...(parameters.logs !== undefined && { initContainers: [logsContainer(parameters.logs)] }),
      containers: [rayContainer(parameters, group)],
      volumes: [
        { name: rayVolume, emptyDir: {} },
        // This volume is for Ray's object store. Its content counts as memory of the pod.
        { name: "shm", emptyDir: { medium: "Memory" } },
        ...(parameters.logs === undefined
          ? []
          : [{ name: logsVolume, configMap: { name: parameters.logs.configMap } }]),
        ...claims.map((claimName, index) => ({ name: volumeName(index), persistentVolumeClaim: { claimName } })),
      ],
    },
  };
}

/**
 * Returns the tolerations of a pod. Nodes with a label are reserved for the pods that select it, and their taint has
 * the same key.
 */
function tolerationsOf(nodeSelector: Readonly<Record<string, string>>, { numGpus }: PodGroup): V1Toleration[] {
  const keys = [...Object.keys(nodeSelector), ...(numGpus > 0 ? [gpuResource] : [])];
  return keys.map((key) => ({ key, operator: "Exists" }));
}

/** Returns the pods that a spread counts by default: those of the same group of the same cluster. */
function podsOfGroup({ kind }: PodGroup): Pick<V1TopologySpreadConstraint, "labelSelector" | "matchLabelKeys"> {
  return { labelSelector: { matchLabels: { [nodeTypeLabel]: kind } }, matchLabelKeys: [clusterLabel, groupLabel] };
}

/** Returns the image of a group. The libraries of CUDA are in a separate image. */
function imageOf({ image, gpuImage, rayVersion }: ClusterParameters, { numGpus }: PodGroup): string {
  if (numGpus > 0) return gpuImage ?? image ?? rayGpuImage(rayVersion);
  return image ?? rayImage(rayVersion);
}

function rayContainer(parameters: ClusterParameters, group: PodGroup): V1Container {
  const resources: Record<string, string> = {
    cpu: String(group.numCpus),
    memory: group.memory,
    ...(group.numGpus > 0 && { [gpuResource]: String(group.numGpus) }),
    ...(group.ephemeralStorage !== undefined && { "ephemeral-storage": group.ephemeralStorage }),
  };
  const env = environment(parameters, group);
  const { environmentSecret } = parameters;
  return {
    name: `ray-${group.kind}`,
    image: group.image ?? imageOf(parameters, group),
    ...(env.length > 0 && { env }),
    ...(environmentSecret !== undefined && { envFrom: [{ secretRef: { name: environmentSecret } }] }),
    ...(group.kind === "head" && {
      ports: [
        { name: "gcs-server", containerPort: 6379 },
        { name: "dashboard", containerPort: dashboardPort },
        { name: "client", containerPort: 10001 },
      ],
    }),
    // Requests and limits are equal, so that a pod has the resources that Ray expects and is evicted last.
    resources: { requests: resources, limits: resources },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    lifecycle: { preStop: { exec: { command: ["/bin/sh", "-c", "ray stop"] } } },
    volumeMounts: [
      { name: rayVolume, mountPath: rayFolder },
      { name: "shm", mountPath: sharedMemoryFolder },
      ...parameters.volumes.map(({ claim, path }) => ({
        name: volumeName(claimsOf(parameters).indexOf(claim)),
        mountPath: path,
      })),
    ],
  };
}

const logsVolume = "logs-settings";
const logsFolder = "/etc/ray-logs";

/**
 * Returns a side car that prints Ray's log files as its output, because the files are deleted with the pod. It stops
 * after Ray.
 */
function logsContainer({ image }: NonNullable<ClusterParameters["logs"]>): V1Container {
  const field = (name: string, fieldPath: string): V1EnvVar => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const resources = { cpu: "50m", memory: "128Mi" };
  return {
    name: "ray-logs",
    image,
    restartPolicy: "Always",
    command: ["/fluent-bit/bin/fluent-bit", "-c", `${logsFolder}/${rayLogs.settingsFile}`],
    env: [
      field(rayLogs.variables.pod, "metadata.name"),
      field(rayLogs.variables.cluster, `metadata.labels['${clusterLabel}']`),
    ],
    resources: { requests: resources, limits: resources },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: [
      { name: rayVolume, mountPath: rayFolder, readOnly: true },
      { name: logsVolume, mountPath: logsFolder, readOnly: true },
    ],
  };
}

/** Returns the claims of the volumes. A claim with two mount paths is one volume of the pod. */
function claimsOf({ volumes }: ClusterParameters): string[] {
  return [...new Set(volumes.map(({ claim }) => claim))];
}

function volumeName(index: number): string {
  return `claim-${index}`;
}

/** Returns the environment variables: those of the cluster and the group override the URL of the catalog. */
function environment(parameters: ClusterParameters, group: PodGroup): V1EnvVar[] {
  const { catalogUrl, catalogKeySecret } = parameters;
  const values = {
    ...(catalogUrl !== undefined && { TILTYARD_CATALOG_URL: catalogUrl }),
    ...parameters.env,
    ...group.env,
  };
  const { secretEnv } = group;
  const plain = [
    ...Object.entries(values).flatMap(([name, value]) => (Object.hasOwn(secretEnv, name) ? [] : [{ name, value }])),
    ...Object.entries(secretEnv).map(([name, secretKeyRef]) => ({
      name,
      valueFrom: { secretKeyRef: { ...secretKeyRef } },
    })),
  ];
  if (catalogKeySecret === undefined || "TILTYARD_API_KEY" in values) return plain;
  const secretKeyRef = { name: catalogKeySecret, key: "apiKey" };
  return [...plain, { name: "TILTYARD_API_KEY", valueFrom: { secretKeyRef } }];
}
