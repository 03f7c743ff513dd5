import { gpuResource, platformDefaults } from "@tiltyard/protocol";
import { z } from "zod";

/**
 * What runs on a node. Ray's three roles are those of requirements.md 2.7; `core` nodes carry
 * the controllers and the catalog, apart from Ray, so that an idle stack can be small.
 */
export const nodeRoles = ["core", "head", "workerCpu", "workerGpu"] as const;
export type NodeRole = (typeof nodeRoles)[number];

export const LabelKeys = z.strictObject({
  core: z.string().default("core"),
  head: z.string().default(platformDefaults.labelKeys.head),
  workerCpu: z.string().default(platformDefaults.labelKeys.workerCpu),
  workerGpu: z.string().default(platformDefaults.labelKeys.workerGpu),
});
export type LabelKeys = z.infer<typeof LabelKeys>;

/** The taint that keeps pods without a GPU off GPU nodes; GKE puts the same one on by itself. */
export const gpuTaint = { key: gpuResource, value: "present" } as const;

const poolName = z
  .string()
  .regex(/^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$/, "must be lower-case letters, digits and dashes, 32 at most");

const Pool = z.strictObject({
  name: poolName,
  role: z.enum(nodeRoles, `must be one of ${nodeRoles.join(", ")}`),
  machineType: z.string().optional(),
  cpus: z.int().positive().optional(),
  memoryGb: z.int().positive().optional(),
  gpus: z.int().nonnegative().default(0),
  gpuType: z.string().optional(),
  diskGb: z.int().min(30, "must be 30 at least: Ray images are large").default(100),
  spot: z.boolean().default(false),
  min: z.int().nonnegative().default(0),
  max: z.int().positive().default(10),
});

/** A group of nodes of one kind, which the autoscaler makes larger and smaller. */
export interface NodePool {
  readonly name: string;
  readonly role: NodeRole;
  /** The cloud's name of the machine. */
  readonly machineType: string;
  /** How many GPUs a node has. */
  readonly gpus: number;
  /** GKE's name of the GPU, e.g. `nvidia-l4`. */
  readonly gpuType: string | undefined;
  /** The boot disk, in GiB. */
  readonly diskGb: number;
  readonly spot: boolean;
  /** The fewest and the most nodes, over all zones. */
  readonly min: number;
  readonly max: number;
}

type Cloud = "gke" | "eks";
type PoolSettings = z.infer<typeof Pool>;

export const NodePools = z.array(Pool).superRefine((pools, context) => {
  const problem = (path: (string | number)[], message: string) => context.addIssue({ code: "custom", path, message });
  pools.forEach((pool, index) => {
    const { name, role, spot, gpus, min, max, machineType, cpus, memoryGb } = pool;
    if (pools.findIndex((other) => other.name === name) !== index)
      problem([index, "name"], `is the name of another pool: ${name}`);
    if (role === "head" && spot)
      problem([index, "spot"], "a head pool must not be spot: losing the head ends the whole Ray cluster");
    if (gpus > 0 && role !== "workerGpu")
      problem([index, "role"], `a pool with GPUs needs the role workerGpu, not ${role}`);
    if (role === "workerGpu" && gpus === 0) problem([index, "gpus"], "a workerGpu pool needs 1 GPU at least");
    if (max < min) problem([index, "max"], `is ${max}, less than min, which is ${min}`);
    if (role === "core" && min === 0) problem([index, "min"], "a core pool needs 1 node at least");
    if ((machineType === undefined) === (cpus === undefined))
      problem([index, "machineType"], "give either machineType, or cpus and memoryGb");
    if (cpus !== undefined && memoryGb === undefined) problem([index, "memoryGb"], "is required with cpus");
  });
  for (const role of ["core", "head", "workerCpu"] as const)
    if (!pools.some((pool) => pool.role === role)) problem([], `there is no pool with the role ${role}`);
});

/**
 * Finds the machine of each pool.
 *
 * @returns The pools, or what is wrong with them, each with its path.
 */
export function resolvePools(
  settings: readonly PoolSettings[],
  cloud: Cloud,
): { readonly pools: NodePool[]; readonly problems: string[] } {
  const problems: string[] = [];
  const pools = settings.map((pool, index): NodePool => {
    const { name, role, gpus, gpuType, diskGb, spot, min, max } = pool;
    const machineType = pool.machineType ?? machineOf(pool, cloud);
    if (machineType === undefined)
      problems.push(`nodePools.${index}.cpus: there is no ${cloud} machine of this size known here; give machineType`);
    if (cloud === "gke" && gpus > 0 && gpuType === undefined)
      problems.push(`nodePools.${index}.gpuType: is required on gke, e.g. nvidia-l4`);
    return { name, role, machineType: machineType ?? "", gpus, gpuType, diskGb, spot, min, max };
  });
  return { pools, problems };
}

const eksFamilies: Readonly<Record<number, string>> = { 2: "c7i", 4: "m7i", 8: "r7i" };
const eksSizes: Readonly<Record<number, string>> = {
  ...{ 2: "large", 4: "xlarge", 8: "2xlarge", 16: "4xlarge", 32: "8xlarge", 48: "12xlarge", 64: "16xlarge" },
};

/** The machine with just these CPUs and this memory. */
function machineOf({ cpus, memoryGb, gpus }: PoolSettings, cloud: Cloud): string | undefined {
  if (cpus === undefined || memoryGb === undefined || gpus > 0) return undefined;
  if (cloud === "gke") {
    const perCpu = memoryGb / cpus;
    return cpus % 2 === 0 && perCpu >= 0.5 && perCpu <= 8 ? `n2-custom-${cpus}-${memoryGb * 1024}` : undefined;
  }
  const [family, size] = [eksFamilies[memoryGb / cpus], eksSizes[cpus]];
  return family && size && `${family}.${size}`;
}

/** The pools of a stack that names none: one node for controllers, and empty pools for Ray. */
export function defaultPools(cloud: Cloud): PoolSettings[] {
  const machines = {
    gke: { core: "e2-standard-4", head: "n2-standard-8", workerCpu: "n2-standard-16", workerGpu: "g2-standard-16" },
    eks: { core: "m7i.xlarge", head: "m7i.2xlarge", workerCpu: "m7i.4xlarge", workerGpu: "g6.4xlarge" },
  }[cloud];
  const gpu = { gpus: 1, ...(cloud === "gke" && { gpuType: "nvidia-l4" }) };
  return z.array(Pool).parse([
    { name: "core", role: "core", machineType: machines.core, min: 1, max: 3 },
    { name: "head", role: "head", machineType: machines.head, max: 5 },
    { name: "cpu", role: "workerCpu", machineType: machines.workerCpu, spot: true, max: 20 },
    { name: "gpu", role: "workerGpu", machineType: machines.workerGpu, ...gpu, spot: true, diskGb: 200, max: 8 },
  ]);
}
