import { describe, expect, test } from "vitest";
import { refusals } from "../support/refusals.ts";
import { deployed } from "../support/stack.ts";

const groupType = "aws:eks/nodeGroup:NodeGroup";
const poolType = "gcp:container/nodePool:NodePool";
const release = "kubernetes:helm.sh/v3:Release";

type Cloud = "eks" | "gke";
const machine = { eks: "m7i.xlarge", gke: "n2-standard-8" };
const arm = { eks: "m7g.xlarge", gke: "c4a-standard-8" };

/** Returns minimal pools with changes of one of them. */
function poolsOf(cloud: Cloud, changes: Readonly<Record<string, object>>) {
  const pools = [
    { name: "core", role: "core", min: 1 },
    { name: "head", role: "head" },
    { name: "cpu", role: "workerCpu" },
  ];
  return pools.map((pool) => ({ ...pool, machineType: machine[cloud], ...changes[pool.name] }));
}

const withPools = (cloud: Cloud, changes: Readonly<Record<string, object>>, settings = {}) =>
  deployed(cloud, { ...settings, nodePools: poolsOf(cloud, changes) });

describe("a pool of several machines", () => {
  test("is one group on EKS, in the zones that have all of them", async () => {
    const machineType = ["m7i.4xlarge", "m6i.4xlarge"];
    const { one } = await withPools("eks", { cpu: { machineType, spot: true } });
    expect(one(groupType, "cpu").inputs).toMatchObject({ instanceTypes: machineType, capacityType: "SPOT" });
    const gpu = { name: "gpu", role: "workerGpu", gpus: 1, machineType: ["g6.xlarge", "g5.xlarge"] };
    const { one: withGpus, resources } = await deployed("eks", { nodePools: [...poolsOf("eks", {}), gpu] });
    expect(withGpus(groupType, "gpu").inputs.instanceTypes).toEqual(["g6.xlarge", "g5.xlarge"]);
    expect(refusals(resources)).toEqual([]);
  });

  test.each([
    ["gke", ["n2-standard-8", "n2d-standard-8"], "nodePools.2.machineType: a pool of GKE has one machine type"],
    ["eks", ["m7i.xlarge", "m7g.xlarge"], "nodePools.2.machineType: must be machines of one architecture"],
    ["eks", [], "nodePools.2.machineType: must be a machine, or a list of machines"],
  ] as const)("is refused where it cannot be: %s %j", async (cloud, machineType, message) => {
    await expect(withPools(cloud, { cpu: { machineType } })).rejects.toThrow(message);
  });
});

describe("an optional pool", () => {
  test.each([
    ["gke", { "gcp:region": "no-gpus1" }, poolType],
    ["eks", { "aws:region": "no-gpus-1" }, groupType],
  ] as const)("is left out on %s with its Ray cluster in a region without its machine", async (cloud, region, type) => {
    const { all, outputs, resources } = await deployed(cloud, region);
    expect(all(type).filter(({ name }) => name.endsWith("-gpu"))).toEqual([]);
    expect(outputs.jobRayClusters).toEqual(["default"]);
    expect(refusals(resources)).toEqual([]);
    const { all: elsewhere, outputs: more } = await deployed(cloud);
    expect(elsewhere(type).filter(({ name }) => name.endsWith("-gpu"))).toHaveLength(1);
    expect(more.jobRayClusters).toEqual(["default", "gpu"]);
  });

  test("is an error where the settings require it", async () => {
    const gpu = { name: "gpu", role: "workerGpu", gpus: 1, machineType: "g6.4xlarge" };
    const settings = { "aws:region": "no-gpus-1", nodePools: [...poolsOf("eks", {}), gpu] };
    await expect(deployed("eks", settings)).rejects.toThrow("g6.4xlarge is offered in no zone of no-gpus-1");
  });

  test("is never one that every job needs", async () => {
    await expect(withPools("eks", { cpu: { optional: true } })).rejects.toThrow(
      "nodePools.2.optional: a pool with the role workerCpu must not be optional",
    );
  });
});

describe("labels of a pool", () => {
  test.each(["eks", "gke"] as const)(
    "adds labels to its nodes on %s, in addition to that of its role",
    async (cloud) => {
      const { one } = await withPools(cloud, { cpu: { labels: { team: "vision" } } });
      const { inputs } = one(cloud === "eks" ? groupType : poolType, "cpu");
      const labels = inputs.labels ?? inputs.nodeConfig.labels;
      expect(labels).toEqual({ team: "vision", "geneva.lancedb.com/ray-worker-cpu": "true" });
    },
  );

  test("are none that Kubernetes sets itself", async () => {
    const labels = { "node.kubernetes.io/kind": "large" };
    await expect(withPools("gke", { cpu: { labels } })).rejects.toThrow("must not be a label of kubernetes.io");
  });
});

describe("Arm machines", () => {
  const all = (cloud: Cloud) =>
    Object.fromEntries(["core", "head", "cpu"].map((name) => [name, { machineType: arm[cloud] }]));

  test.each(["eks", "gke"] as const)("carry all of a stack on %s", async (cloud) => {
    const { one, resources, outputs } = await withPools(cloud, all(cloud));
    expect(refusals(resources)).toEqual([]);
    if (cloud === "eks") expect(one(groupType, "cpu").inputs.amiType).toBe("AL2023_ARM_64_STANDARD");
    expect(one("docker-build:index:Image", "catalog-image").inputs.platforms).toEqual(["linux/arm64"]);
    expect(one("docker-build:index:Image", "ray-image").inputs.platforms).toEqual(["linux/arm64"]);
    expect(outputs).toMatchObject({
      // GKE taints Arm nodes and admits only pods that select them.
      headNodeSelector: { "geneva.lancedb.com/ray-head": "true", "kubernetes.io/arch": "arm64" },
      workerCpuNodeSelector: { "kubernetes.io/arch": "arm64" },
    });
    const { nodeSelector, tolerations } = one(release, "operator").inputs.values;
    expect(nodeSelector).toEqual({ "geneva.lancedb.com/core": "true", "kubernetes.io/arch": "arm64" });
    expect(tolerations).toContainEqual({ key: "kubernetes.io/arch", operator: "Exists" });
  });

  test("need an image for both architectures when only workers use Arm", async () => {
    const cpu = { machineType: arm.eks };
    const built = await withPools("eks", { cpu });
    expect(built.one("docker-build:index:Image", "ray-image").inputs.platforms).toEqual(["linux/amd64", "linux/arm64"]);
    const unbuilt = { ray: { build: false } };
    await expect(withPools("eks", { cpu }, unbuilt)).rejects.toThrow("ray.image: is required where heads are amd64");
    const { outputs, one } = await withPools("eks", { cpu }, { ray: { image: "example.com/ray:1" } });
    expect(outputs.headNodeSelector).not.toHaveProperty("kubernetes.io/arch");
    expect(outputs.workerCpuNodeSelector).toMatchObject({ "kubernetes.io/arch": "arm64" });
    expect(one("docker-build:index:Image").inputs.platforms).toEqual(["linux/amd64"]);
  });

  test("are not mixed with others in a role, which pods select", async () => {
    const nodePools = [...poolsOf("gke", {}), { name: "arm", role: "workerCpu", machineType: arm.gke }];
    await expect(deployed("gke", { nodePools })).rejects.toThrow("the role workerCpu must have one architecture");
  });

  test("sets the architecture of an existing cluster by a setting", async () => {
    const { one, outputs } = await deployed("existing", { architecture: "arm64" });
    expect(outputs.rayImage).toBe("rayproject/ray:2.60.0-py312-aarch64");
    expect(outputs.headNodeSelector).toMatchObject({ "kubernetes.io/arch": "arm64" });
    const { spec } = one("kubernetes:apps/v1:StatefulSet").inputs.spec.template;
    expect(spec.nodeSelector).toEqual({ "kubernetes.io/arch": "arm64" });
  });
});
