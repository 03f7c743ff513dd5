import { gpuResource, labelValue, platformDefaults } from "@tiltyard/platform";
import { z } from "zod";
import {
  type Architecture,
  architectureLabel,
  architectureOf,
  type Cloud,
  capacityOf,
  defaultDisk,
  machineOf,
  shareOf,
} from "./machines.ts";
import { labelKey, labelName, labels, labelValueText } from "./settings/setting-types.ts";

/**
 * The roles of nodes: the three roles of Ray, and `core` for the controllers and the catalog, separate from Ray so that
 * an idle stack can be small.
 */
export const nodeRoles = ["core", "head", "workerCpu", "workerGpu"] as const;
export type NodeRole = (typeof nodeRoles)[number];

export const LabelKeys = z.strictObject({
  core: labelName.default("core"),
  head: labelName.default(platformDefaults.labelKeys.head),
  workerCpu: labelName.default(platformDefaults.labelKeys.workerCpu),
  workerGpu: labelName.default(platformDefaults.labelKeys.workerGpu),
});
export type LabelKeys = z.infer<typeof LabelKeys>;

/** Returns the label of the nodes of a role. */
export function roleLabels(
  { labelDomain, labelKeys }: { readonly labelDomain: string; readonly labelKeys: LabelKeys },
  role: NodeRole,
): Record<string, string> {
  return { [`${labelDomain}/${labelKeys[role]}`]: labelValue };
}

const taintEffects = ["NoSchedule", "PreferNoSchedule", "NoExecute"] as const;
const Taint = z.strictObject({
  key: labelKey,
  value: labelValueText.default(labelValue),
  effect: z.enum(taintEffects, `must be one of ${taintEffects.join(", ")}`).default("NoSchedule"),
});
export type Taint = z.infer<typeof Taint>;

/**
 * Returns the default taints of a role. GPU nodes are reserved for pods that request GPUs, which the admission of both
 * clouds (ExtendedResourceToleration) lets tolerate the taint. The taints of head and CPU nodes are only preferences,
 * because Geneva's own Ray clusters have no tolerations and would wait forever.
 *
 * @param labels The labels of the pool's nodes.
 */
function defaultTaints(role: NodeRole, labels: Readonly<Record<string, string>>): Taint[] {
  if (role === "core") return [];
  if (role === "workerGpu") return [{ key: gpuResource, value: "present", effect: "NoSchedule" }];
  return Object.entries(labels).map(([key, value]) => ({ key, value, effect: "PreferNoSchedule" }));
}

/** Returns a taint in the format of both clouds' APIs. */
export function cloudTaint({ key, value, effect }: Taint) {
  return { key, value, effect: effect.replace(/(?!^)([A-Z])/g, "_$1").toUpperCase() };
}

const poolName = z
  .string()
  .regex(/^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$/, "must be at most 32 lower-case letters, digits and dashes");

const Pool = z.strictObject({
  name: poolName,
  role: z.enum(nodeRoles, `must be one of ${nodeRoles.join(", ")}`),
  /** One machine, or on EKS several machines of one size, from which the cloud chooses available ones. */
  machineType: z
    .union([z.string(), z.tuple([z.string()], z.string())], "must be a machine, or a list of machines")
    .optional(),
  cpus: z.int().positive().optional(),
  memoryGb: z.int().positive().optional(),
  gpus: z.int().nonnegative().default(0),
  gpuType: z.string().optional(),
  diskGb: z.int().min(30, "must be at least 30: Ray images are large").default(100),
  spot: z.boolean().default(false),
  min: z.int().nonnegative().default(0),
  max: z.int().positive().default(10),
  zones: z.array(z.string()).nonempty("must name at least one zone").optional(),
  labels: labels.default({}),
  taints: z.array(Taint).optional(),
  diskType: z.string().optional(),
  /** True leaves the pool out in a region that does not offer its machine. */
  optional: z.boolean().default(false),
});

/** A group of equal nodes that the autoscaler resizes. */
export interface NodePool {
  readonly name: string;
  readonly role: NodeRole;
  /** The cloud's names of the possible machines, the preferred one first. */
  readonly machineTypes: readonly [string, ...string[]];
  readonly architecture: Architecture;
  /** The number of GPUs of a node. */
  readonly gpus: number;
  /** GKE's name of the GPU, such as `nvidia-l4`. */
  readonly gpuType: string | undefined;
  /** The size of the boot disk in GiB. */
  readonly diskGb: number;
  /** The cloud's name of the boot disk's type. */
  readonly diskType: string;
  readonly spot: boolean;
  /** The minimum and the maximum number of nodes across all zones. */
  readonly min: number;
  readonly max: number;
  /** The zones of the nodes; those of the cluster that offer the machine if undefined. */
  readonly zones: readonly string[] | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly optional: boolean;
}

type PoolSettings = z.infer<typeof Pool>;

export const reservedLabel = /(^|\.)(kubernetes|k8s)\.io\//;

export const NodePools = z.array(Pool).superRefine((pools, context) => {
  const problem = (path: (string | number)[], message: string) => context.addIssue({ code: "custom", path, message });
  pools.forEach((pool, index) => {
    const { name, role, spot, gpus, min, max, machineType, cpus, memoryGb } = pool;
    if (pools.findIndex((other) => other.name === name) !== index)
      problem([index, "name"], `is the name of another pool: ${name}`);
    if (role === "head" && spot)
      problem([index, "spot"], "a head pool must not be spot: losing the head ends the whole Ray cluster");
    for (const key of Object.keys(pool.labels))
      if (reservedLabel.test(key))
        problem([index, "labels", key], "must not be a label of kubernetes.io or k8s.io, which clouds set themselves");
    if (gpus > 0 && role !== "workerGpu")
      problem([index, "role"], `a pool with GPUs needs the role workerGpu, not ${role}`);
    if (role === "workerGpu" && gpus === 0) problem([index, "gpus"], "a workerGpu pool needs at least 1 GPU");
    if (max < min) problem([index, "max"], `is ${max}, less than min, which is ${min}`);
    if (pool.optional && role !== "workerGpu")
      problem([index, "optional"], `a pool with the role ${role} must not be optional: every job needs one`);
    if (role === "core" && min === 0) problem([index, "min"], "a core pool needs at least 1 node");
    if ((machineType === undefined) === (cpus === undefined))
      problem([index, "machineType"], "requires either machineType, or cpus and memoryGb");
    if (cpus !== undefined && memoryGb === undefined) problem([index, "memoryGb"], "is required with cpus");
  });
  const missing = (["core", "head", "workerCpu"] as const).filter((role) => !pools.some((pool) => pool.role === role));
  if (missing.length > 0) problem([], `no pool has the role ${missing.join(", ")}`);
});

/**
 * Finds the machine of each pool.
 *
 * @returns The pools, or their problems with paths.
 */
export function resolvePools(
  settings: readonly PoolSettings[],
  cloud: Cloud,
  labelsOf: (role: NodeRole) => Readonly<Record<string, string>>,
): { readonly pools: NodePool[]; readonly problems: string[] } {
  const problems: string[] = [];
  const pools = settings.map((pool, index): NodePool => {
    const { name, role, gpus, gpuType, diskGb, spot, min, max, zones, optional } = pool;
    const machineTypes = machinesOf(pool, cloud);
    const [machineType] = machineTypes;
    if (machineType === "")
      problems.push(`nodePools.${index}.cpus: no known ${cloud} machine has this size; set machineType`);
    if (cloud === "gke" && machineTypes.length > 1)
      problems.push(
        `nodePools.${index}.machineType: a pool of GKE has one machine type; write a pool for each, of one role: the ` +
          "autoscaler uses an available one",
      );
    const architecture = architectureOf(machineType, cloud);
    if (cloud === "eks" && machineTypes.some((each) => architectureOf(each, cloud) !== architecture))
      problems.push(`nodePools.${index}.machineType: must be machines of one architecture: ${machineTypes.join(", ")}`);
    if (cloud === "gke" && gpus > 0 && gpuType === undefined)
      problems.push(`nodePools.${index}.gpuType: is required on gke, e.g. nvidia-l4`);
    if (cloud === "gke" && machineType.startsWith("n1-") && gpus > 0 && zones === undefined)
      problems.push(
        `nodePools.${index}.zones: is required for GPUs that are attached to n1 machines: gcloud compute ` +
          `accelerator-types list --filter="name=${gpuType ?? "TYPE"}" lists their zones`,
      );
    const first = firstNodes({ min }, zones?.length ?? 1);
    if (cloud === "gke" && first > max)
      problems.push(
        `nodePools.${index}.zones: GKE begins with equally many nodes in each zone, here with ${first}, more than max`,
      );
    const itsLabels = labelsOf(role);
    return {
      ...{ name, role, gpus, gpuType, diskGb, spot, min, max, zones, machineTypes, architecture, optional },
      labels: { ...pool.labels, ...itsLabels },
      diskType: pool.diskType ?? defaultDisk(machineType, cloud),
      taints: pool.taints ?? defaultTaints(role, itsLabels),
    };
  });
  for (const role of nodeRoles)
    if (architecturesOf(pools, role).length > 1)
      problems.push(
        `nodePools: the pools of the role ${role} must have one architecture: pods select nodes by the role`,
      );
  return { pools, problems };
}

/** Returns the machines of a pool. The name is empty if no machine has its size. */
function machinesOf({ machineType, cpus, memoryGb, gpus }: PoolSettings, cloud: Cloud): [string, ...string[]] {
  if (Array.isArray(machineType)) return machineType;
  const fits = cpus === undefined || memoryGb === undefined || gpus > 0 ? undefined : machineOf(cpus, memoryGb, cloud);
  return [machineType ?? fits ?? ""];
}

/** Returns the number of nodes with which a pool of GKE begins: equally many in each zone, and at least its minimum. */
export function firstNodes({ min }: Pick<NodePool, "min">, zoneCount: number): number {
  return Math.ceil(min / zoneCount) * zoneCount;
}

function architecturesOf(pools: readonly NodePool[], role: NodeRole): Architecture[] {
  return [...new Set(pools.filter((pool) => pool.role === role).map(({ architecture }) => architecture))];
}

/** Returns the architecture of the images for each role; the fallback if no pool has the role. */
export function architecturesOfRoles(
  pools: readonly NodePool[],
  otherwise: Architecture = "amd64",
): Record<NodeRole, Architecture> {
  return ofEachRole((role) => architecturesOf(pools, role)[0] ?? otherwise);
}

export function ofEachRole<Value>(its: (role: NodeRole) => Value): Record<NodeRole, Value> {
  const [core, head, workerCpu, workerGpu] = [its("core"), its("head"), its("workerCpu"), its("workerGpu")];
  return { core, head, workerCpu, workerGpu };
}

/**
 * Returns the node selector of pods of a role. Arm nodes are also selected by their architecture, because GKE taints
 * them and admits only pods with that selector.
 */
export function withArchitecture(
  labels: Readonly<Record<string, string>>,
  architecture: Architecture,
): Readonly<Record<string, string>> {
  return architecture === "arm64" ? { ...labels, [architectureLabel]: architecture } : labels;
}

/**
 * Returns the selector and the tolerations of pods. Pods tolerate taints whose keys are labels of their selector,
 * because those nodes are reserved for them.
 */
export function placedOn(selector: Readonly<Record<string, string>>) {
  const tolerations = Object.keys(selector).map((key) => ({ key, operator: "Exists" }));
  return { nodeSelector: selector, tolerations };
}

/** The CPUs of a default worker, with its share of the cloud's reservation. */
const workerCpus = 5;

/**
 * Returns the default Ray clusters of jobs on the pools of a stack: one with CPU workers, and one with a GPU for each
 * worker. Their workers fill a node. The kubelet reserves a part of it: four workers with 4 CPUs do not fit a node
 * with 16.
 */
export function defaultRayClusters(pools: readonly NodePool[], cloud: Cloud): Record<string, Record<string, unknown>> {
  const [cpuPool, gpuPool] = (["workerCpu", "workerGpu"] as const).map((role) =>
    pools.find((pool) => pool.role === role),
  );
  const gpuWorker = gpuPool && { num_gpus: 1, ...sizeOf(gpuPool, cloud) };
  return {
    default: { worker_groups: [sizeOf(cpuPool, cloud)] },
    ...(gpuWorker !== undefined && { gpu: { worker_groups: [gpuWorker] } }),
  };
}

/** Returns the parameters of a worker that fits the nodes of a pool; empty for an unknown machine. */
function sizeOf(pool: NodePool | undefined, cloud: Cloud): object {
  const node = pool && capacityOf(pool.machineTypes[0], cloud);
  if (pool === undefined || node === undefined) return {};
  const { cpus, memoryGb } = shareOf(node, pool.gpus > 0 ? pool.gpus : Math.max(1, Math.floor(node.cpus / workerCpus)));
  return cpus >= 1 && memoryGb >= 1 ? { num_cpus: cpus, memory: `${memoryGb}Gi` } : {};
}

/**
 * Returns the default pools of a stack: one node for controllers, and empty pools for Ray. Some regions have no GPUs of
 * that kind. Two kinds of spot machines on EKS are rarely interrupted at once; on GKE each needs a pool.
 */
export function defaultPools(cloud: Cloud): PoolSettings[] {
  const machines = {
    gke: { core: "e2-standard-4", head: "n2-standard-8", workerCpu: "n2-standard-16", workerGpu: "g2-standard-16" },
    eks: {
      core: "m7i.xlarge",
      head: "m7i.2xlarge",
      workerCpu: ["m7i.4xlarge", "m6i.4xlarge"],
      workerGpu: "g6.4xlarge",
    },
  }[cloud];
  const gpu = { gpus: 1, ...(cloud === "gke" && { gpuType: "nvidia-l4" }) };
  return z.array(Pool).parse([
    { name: "core", role: "core", machineType: machines.core, min: 1, max: 3 },
    { name: "head", role: "head", machineType: machines.head, max: 5 },
    { name: "cpu", role: "workerCpu", machineType: machines.workerCpu, spot: true, max: 20 },
    {
      ...{ name: "gpu", role: "workerGpu", machineType: machines.workerGpu, ...gpu },
      ...{ spot: true, diskGb: 200, max: 8, optional: true },
    },
  ]);
}
