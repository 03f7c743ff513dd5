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

/** Matches Google's machines that support only Hyperdisk: the fourth generation and later. */
const onlyHyperdisk = /^(n4|c4|x4|m4|a4|h4)/;

export function takesOnlyHyperdisk(machineType: string): boolean {
  return onlyHyperdisk.test(machineType);
}

export function defaultDisk(machineType: string, cloud: Cloud): string {
  if (cloud === "eks") return "gp3";
  return takesOnlyHyperdisk(machineType) ? "hyperdisk-balanced" : "pd-balanced";
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
