import { runnerRights } from "@tiltyard/platform";
import { describe, expect, test } from "vitest";
import { templatesIn } from "../../runner/open-rayjobs.ts";
import { type Deployed, deployed } from "../support/stack.ts";

const clouds = ["existing", "existing-gke", "existing-eks", "gke", "eks"];

function podOf({ one }: Deployed) {
  return one("kubernetes:apps/v1:Deployment", "runner").inputs.spec.template.spec;
}

function templatesOf({ one }: Deployed) {
  const file = JSON.parse(one("kubernetes:core/v1:ConfigMap", "runner").inputs.data["runner.yaml"]);
  return Object.fromEntries(templatesIn(file, {}));
}

describe.each(clouds)("the runner on %s", (variant) => {
  const stack = deployed(variant);

  test("may do in the namespace of Ray what jobs need, by an account where no Ray job can run as it", async () => {
    const { one, resources } = await stack;
    const role = one("kubernetes:rbac.authorization.k8s.io/v1:Role", "runner").inputs;
    expect([role.metadata.namespace, role.rules]).toEqual(["lancedb", runnerRights]);
    const resourcesOfRole = role.rules.flatMap(({ resources: names }: { resources: string[] }) => names);
    expect(resourcesOfRole).toEqual(["rayjobs", "rayclusters", "secrets", "pods"]);
    const account = { kind: "ServiceAccount", name: "tiltyard-runner", namespace: "lancedb-catalog" };
    const bindings = resources.filter(({ inputs }) =>
      JSON.stringify(inputs.subjects ?? []).includes("tiltyard-runner"),
    );
    expect(bindings.map(({ inputs }) => [inputs.metadata.namespace, inputs.subjects])).toEqual([
      ["lancedb", [account]],
    ]);
  });

  test("has no variables of the catalog's service, whose names begin like settings", async () => {
    expect(podOf(await stack).enableServiceLinks).toBe(false);
  });

  test("has no identity of the cloud", async () => {
    const { one, resources } = await stack;
    const { annotations } = one("kubernetes:core/v1:ServiceAccount", "runner").inputs.metadata;
    const others = Object.keys(annotations).filter((name) => !name.startsWith("tiltyard.dev/"));
    expect(others).toEqual(["pulumi.com/patchForce"]);
    const ofCloud = resources.filter(({ type }) => /^(aws|gcp|eks):/.test(type));
    expect(JSON.stringify(ofCloud.map(({ inputs }) => inputs))).not.toContain("tiltyard-runner");
  });

  test("has Ray clusters that the runner accepts, on the stack's nodes and with its images", async () => {
    const found = await stack;
    const templates = templatesOf(found);
    expect(Object.keys(templates)).toEqual(found.outputs.jobRayClusters);
    for (const template of Object.values(templates))
      expect(template).toMatchObject({
        configMethod: "IN_CLUSTER",
        namespace: found.outputs.namespace,
        serviceAccount: found.outputs.serviceAccount,
        image: found.outputs.rayImage,
        gpuImage: found.outputs.rayGpuImage,
        headPriorityClass: found.outputs.headPriorityClass,
        catalogUrl: found.outputs.catalogUrl,
        nodeSelectors: {
          head: found.outputs.headNodeSelector,
          workerCpu: found.outputs.workerCpuNodeSelector,
          workerGpu: found.outputs.workerGpuNodeSelector,
        },
      });
    expect(templates.gpu?.workerGroups).toMatchObject([{ numGpus: 1 }]);
  });

  test("has a key of its own in a secret, which the catalog knows as a runner's", async () => {
    const { one } = await stack;
    const key = one("kubernetes:core/v1:Secret", "runner").inputs.stringData.TILTYARD_API_KEY;
    const { TILTYARD_RUNNER_API_KEY, TILTYARD_BOOTSTRAP_API_KEY } = one("kubernetes:core/v1:Secret", "catalog").inputs
      .stringData;
    expect(key).toBe(TILTYARD_RUNNER_API_KEY);
    expect(key).not.toBe(TILTYARD_BOOTSTRAP_API_KEY);
  });

  test("runs without rights on its node, with valid arguments and variables", async () => {
    const found = await stack;
    const pod = podOf(found);
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
    const [container] = pod.containers;
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(container.image).toBe(
      found.resources.find(({ name, type }) => name === "catalog" && /:(StatefulSet|Deployment)$/.test(type))?.inputs
        .spec.template.spec.containers[0].image,
    );
    expect(container.command).toEqual(["node", "runner/main.ts", "--file", "/etc/tiltyard/runner.yaml"]);
    const variables = Object.fromEntries(
      container.env.map(({ name, value }: { name: string; value: string }) => [name, value]),
    );
    expect(variables.TILTYARD_CATALOG_URL).toBe(found.outputs.catalogUrl);
  });

  test("accepts no requests, and only calls the catalog and the API server", async () => {
    const { spec } = (await stack).one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "runner").inputs;
    expect(spec.ingress).toEqual([]);
    const ports = spec.egress.flatMap((rule: { ports: { port: number }[] }) => rule.ports.map(({ port }) => port));
    expect(new Set(ports)).toEqual(new Set([53, 2333, 443, 6443, 8443, 16443]));
  });
});

describe("the settings of a runner", () => {
  const withRunner = (runner: object, more: object = {}) => deployed("existing", { runner, ...more });

  test("name the Ray clusters that jobs may have, a queue and limits", async () => {
    const default_ = { head_group: { num_cpus: 2 }, worker_groups: [{ name: "big", num_cpus: 16, memory: "64Gi" }] };
    const stack = await withRunner({ rayClusters: { default: default_ }, queue: "team-a", maxJobs: 3, attempts: 1 });
    expect(templatesOf(stack).default).toMatchObject({
      headGroup: { numCpus: 2 },
      workerGroups: [{ name: "big", numCpus: 16, memory: "64Gi" }],
    });
    expect(stack.outputs.jobRayClusters).toEqual(["default"]);
    const options = [
      "--max-jobs",
      "3",
      "--max-jobs-per-principal",
      "5",
      "--attempts",
      "1",
      "--capacity-timeout-minutes",
      "60",
      "--queue",
      "team-a",
      "--alive-file",
      "/tmp/alive",
    ];
    expect(podOf(stack).containers[0].args).toEqual(options);
  });

  test("mount the tables of a file bucket in jobs", async () => {
    const catalog = { image: "registry.example.com/catalog:1", volumeClaim: "tables" };
    const stack = await withRunner({}, { bucket: "file:///mnt/tables", catalog });
    expect(templatesOf(stack).default?.volumes).toEqual([{ claim: "tables", path: "/mnt/tables" }]);
  });

  test.each([
    [{ rayClusters: { gpu: {} } }, "runner.rayClusters: must have one that is named default"],
    [
      { rayClusters: { default: { namespace: "other", catalog_url: "http://x" } } },
      "runner.rayClusters.default: must not have namespace, catalog_url, which the stack determines",
    ],
    [{ rayClusters: { default: { workerGroups: [] } } }, "runner.rayClusters.default"],
    [
      { rayClusters: { default: { worker_groups: [{ num_cpu: 4 }] } } },
      "runner.rayClusters.default.worker_groups.0: has no parameter num_cpu",
    ],
    [
      { rayClusters: { default: {}, gpu: { ray_version: "2.40.0" } } },
      "runner.rayClusters.gpu.ray_version: must be 2.43 or later",
    ],
    [{ maxJobs: 0 }, "runner.maxJobs"],
    [{ jobSecrets: ["Hugging/Face"] }, "runner.jobSecrets"],
    [{ capacityTimeoutMinutes: 0 }, "runner.capacityTimeoutMinutes"],
  ])("are refused when they cannot work: %j", async (runner, problem) => {
    await expect(withRunner(runner)).rejects.toThrow(problem);
  });

  test.each([
    [{ runner: { enabled: false } }, true],
    [{ catalog: { enabled: false } }, false],
  ])("omit the runner when it has nothing to run: %j", async (settings, hasCatalog) => {
    const { resources, outputs } = await deployed("gke", settings);
    expect(resources.filter(({ name }) => name.startsWith("runner"))).toEqual([]);
    expect(outputs).not.toHaveProperty("jobRayClusters");
    expect("catalogUrl" in outputs).toBe(hasCatalog);
  });
});
