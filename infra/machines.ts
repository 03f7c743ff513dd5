/** The known properties of the clouds' machines by name. */

export type Cloud = "gke" | "eks";

/** The architectures in the terms of Kubernetes and container registries. */
export const architectures = ["amd64", "arm64"] as const;
export type Architecture = (typeof architectures)[number];

/** The label that Kubernetes sets on each node. GKE taints its Arm nodes with the same key. */
export const architectureLabel = "kubernetes.io/arch";

const armOf: Readonly<Record<Cloud, RegExp>> = {
  // The families with Axion and Ampere Altra, and with Grace next to GPUs.
  gke: /^(t2a|c4a|n4a|a4x)-/,
  // Graviton machines have a g after the generation: m7g, c7gn, im4gn. The g of g6 stands for a GPU.
  eks: /^[a-z]+\d+g[a-z]*\./,
};

export function architectureOf(machineType: string, cloud: Cloud): Architecture {
  return armOf[cloud].test(machineType) ? "arm64" : "amd64";
}

/** Matches Google's machines that support only Hyperdisk: the fourth generation and later, and A3 Ultra. */
const onlyHyperdisk = /^([a-z]+([4-9]|\d\d)|a3-ultragpu)/;

export function supportsOnlyHyperdisk(machineType: string): boolean {
  return onlyHyperdisk.test(machineType);
}

export function defaultDisk(machineType: string, cloud: Cloud): string {
  if (cloud === "eks") return "gp3";
  return supportsOnlyHyperdisk(machineType) ? "hyperdisk-balanced" : "pd-balanced";
}

const eksFamilies: Readonly<Record<number, string>> = { 2: "c7i", 4: "m7i", 8: "r7i" };
const eksSizes: Readonly<Record<number, string>> = {
  ...{ 2: "large", 4: "xlarge", 8: "2xlarge", 16: "4xlarge", 32: "8xlarge", 48: "12xlarge", 64: "16xlarge" },
};

/** Returns the machine without GPUs that has exactly these CPUs and this memory; undefined if none is known. */
export function machineOf(cpus: number, memoryGb: number, cloud: Cloud): string | undefined {
  const perCpu = memoryGb / cpus;
  if (cloud === "gke")
    return cpus % 2 === 0 && perCpu >= 0.5 && perCpu <= 8 ? `n2-custom-${cpus}-${memoryGb * 1024}` : undefined;
  const [family, size] = [eksFamilies[perCpu], eksSizes[cpus]];
  return family && size && `${family}.${size}`;
}

/** The resources of a machine. */
export interface Capacity {
  readonly cpus: number;
  readonly memoryGb: number;
}

/** The memory in GB for each CPU, by the class of a machine of GKE and by the family of a machine of EKS. */
const gkeMemory: Readonly<Record<string, number>> = { standard: 4, highmem: 8, highcpu: 1 };
const eksMemory: Readonly<Record<string, number>> = { c: 2, m: 4, r: 8, g: 4 };

/** Returns the resources of a machine by its name; undefined if they are unknown. */
export function capacityOf(machineType: string, cloud: Cloud): Capacity | undefined {
  if (cloud === "gke") {
    const [, customCpus, megabytes] = /custom-(\d+)-(\d+)$/.exec(machineType) ?? [];
    if (customCpus !== undefined) return { cpus: Number(customCpus), memoryGb: Number(megabytes) / 1024 };
    const [, kind = "", size] = /^[a-z]\w+-([a-z]+)-(\d+)$/.exec(machineType) ?? [];
    return capacity(Number(size), gkeMemory[kind]);
  }
  const [, family = "", times, size] = /^([a-z])\d\w*\.(\d*)(x?large)$/.exec(machineType) ?? [];
  return capacity(size === "large" ? 2 : 4 * Number(times || 1), eksMemory[family]);
}

function capacity(cpus: number, perCpu: number | undefined): Capacity | undefined {
  return perCpu === undefined || Number.isNaN(cpus) ? undefined : { cpus, memoryGb: cpus * perCpu };
}

/** The CPUs, and the share of the memory, of a node that the kubelet and daemons of the cloud reserve at most. */
const reservedCpus = 1;
const reservedMemory = 0.2;

/** Returns the resources of each of several equal pods that together fill a node. */
export function shareOf({ cpus, memoryGb }: Capacity, podCount: number): Capacity {
  return {
    cpus: Math.floor((cpus - reservedCpus) / podCount),
    memoryGb: Math.floor((memoryGb * (1 - reservedMemory)) / podCount),
  };
}
