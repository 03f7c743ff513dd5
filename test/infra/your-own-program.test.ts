import * as pulumi from "@pulumi/pulumi";
import { amountOf, parseJobCluster } from "@tiltyard/platform";
import { expect, test, vi } from "vitest";
import { ExistingCluster } from "../../infra/library.ts";
import { capacityOf, shareOf } from "../../infra/machines.ts";
import { cloudOutputs } from "../support/clouds.ts";
import { setMocks } from "../support/pulumi-mocks.ts";

type Inputs = Record<string, Record<string, unknown>>;

/** Creates the resources of a program with mocks. @returns The requested resources. */
async function mockProgram(project: string, config: Readonly<Record<string, string>>) {
  const asked: { type: string; name: string; inputs: Inputs }[] = [];
  await setMocks(
    {
      newResource: ({ type, name, inputs }) => {
        asked.push({ type, name, inputs });
        return { id: `${name}-id`, state: cloudOutputs(type, name, inputs) };
      },
      call: () => ({}),
    },
    project,
  );
  const named = Object.entries(config).map(([key, value]) => [`${project}:${key}`, value]);
  pulumi.runtime.setAllConfig(Object.fromEntries(named));
  return asked;
}

const finder = (asked: readonly { type: string; name: string; inputs: Inputs }[]) => (type: string, name: string) =>
  asked.find((each) => each.type.endsWith(type) && each.name === name)?.inputs;

test("the example of a program of one's own puts Ray and the catalog on its cluster", async () => {
  const asked = await mockProgram("your-own-program", {
    bucket: "s3://tables/lance",
    databaseUrl: "postgres://u:hunter2@db:6000/t",
  });
  const program = await import("../../examples/your-own-program/index.ts");
  expect(program.catalogUrl).toBe("http://tiltyard-catalog.features-catalog.svc:2333");
  await new Promise((resolve) => program.catalogApiKey.apply(resolve));
  expect(await pulumi.isSecret(program.catalogApiKey)).toBe(true);
  await pulumi.runtime.disconnect();

  const one = finder(asked);
  expect(one(":Namespace", "ray")?.metadata?.name).toBe("features");
  expect(one(":Namespace", "catalog")?.metadata?.name).toBe("features-catalog");
  expect(one(":Deployment", "catalog")?.spec).toMatchObject({ replicas: 2 });
  const { rayClusters } = JSON.parse(String(one(":ConfigMap", "runner")?.data?.["runner.yaml"]));
  expect(rayClusters.default).toMatchObject({
    namespace: "features",
    image: "registry.example.com/tiltyard-ray:0.1.0",
    worker_groups: [{ num_cpus: 8 }],
  });
  expect(one(":RoleBinding", "ray-client")?.subjects).toMatchObject([{ kind: "Group", name: "ml-engineers" }]);
  // The URL of the database appears only in the secret. The network policy contains only its port.
  const showing = asked.filter(({ inputs }) => JSON.stringify(inputs).includes("hunter2"));
  expect(showing.map(({ type }) => type)).toEqual(["kubernetes:core/v1:Secret"]);
  expect(JSON.stringify(showing)).toContain("4dabf18193072939515e22adb298388d");
  expect(JSON.stringify(one(":NetworkPolicy", "catalog"))).toContain("6000");
});

test("the example for EKS passes outputs of its cluster and of its bucket to the components", async () => {
  const asked = await mockProgram("eks-program", { databaseUrl: "postgres://u:hunter2@db:6000/t" });
  const program = await import("../../examples/eks-program/index.ts");
  await new Promise((resolve) => program.catalogApiKey.apply(resolve));
  await pulumi.runtime.disconnect();

  const one = finder(asked);
  const annotations = { "eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/tables" };
  for (const [name, account] of [
    ["ray", "geneva-service-account"],
    ["catalog", "tiltyard-catalog"],
  ] as const)
    expect(one(":ServiceAccount", name)?.metadata).toMatchObject({ name: account, annotations });
  expect(JSON.stringify(one(":Deployment", "catalog"))).toContain("s3://tables-1234567/lance");
  expect(JSON.stringify(one("pulumi:providers:kubernetes", "features-kubernetes"))).toContain("get-token");
  const trust = JSON.stringify(one("aws:iam/role:Role", "tables"));
  for (const account of ["features:geneva-service-account", "features-catalog:tiltyard-catalog"])
    expect(trust).toContain(`system:serviceaccount:${account}`);
});

test("the example for EKS has nodes for its Ray head, its workers and its controllers", async () => {
  const asked = await mockProgram("eks-program", { databaseUrl: "postgres://u:hunter2@db:6000/t" });
  vi.resetModules();
  const program = await import("../../examples/eks-program/index.ts");
  await new Promise((resolve) => program.catalogApiKey.apply(resolve));
  await pulumi.runtime.disconnect();
  const one = finder(asked);
  const { instanceType, desiredCapacity } = one("eks:index:Cluster", "features") as unknown as NodesOfExample;
  const node = shareOf(capacityOf(instanceType, "eks") ?? { cpus: 0, memoryGb: 0 }, 1);
  const { rayClusters } = JSON.parse(String(one(":ConfigMap", "runner")?.data?.["runner.yaml"]));
  const { headGroup, workerGroups, nodeSelectors } = parseJobCluster("job", rayClusters.default);
  expect(nodeSelectors).toEqual({ head: {}, workerCpu: {}, workerGpu: {} });
  const workers = workerGroups.flatMap((group) => Array.from({ length: group.maxReplicas }, () => group));
  // Each of these needs a node of its own.
  const pods = [headGroup, ...workers];
  expect(pods.length).toBeLessThanOrEqual(desiredCapacity);
  for (const { numCpus, memory } of pods) {
    expect(numCpus).toBeLessThanOrEqual(node.cpus);
    expect(amountOf(memory)).toBeLessThanOrEqual(node.memoryGb * 2 ** 30);
  }
  // The controllers run next to the head: two replicas of the catalog with half a CPU, the operator, and the runner.
  expect(headGroup.numCpus + 2 * 0.5 + 0.1 + 0.1).toBeLessThanOrEqual(node.cpus);
});

interface NodesOfExample {
  readonly instanceType: string;
  readonly desiredCapacity: number;
}

test.each([
  [{ bucket: "tables" }, "bucket: must be s3://... or gs://... or file:///..., not tables"],
  [{ bucket: "s3://tables", clientPrincipals: ["ada"] }, "clientPrincipals: must be user:NAME or group:NAME, not ada"],
])("a cluster with the arguments %j is rejected at construction", async (args, message) => {
  await mockProgram("refused", {});
  expect(() => new ExistingCluster("yard", { clusterName: "yard", ...args })).toThrow(message);
  await pulumi.runtime.disconnect();
});
