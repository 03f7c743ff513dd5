/** Faults that a first `up` on a real cloud or a real API server shows. docs/internals/clouds.md names the sources. */
import { describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { waitUntilAuthorized } from "../../infra/components/eks/authorization.ts";
import { parseStackConfig } from "../../infra/config.ts";
import { capacityOf, defaultDisk } from "../../infra/machines.ts";
import { contextNotice, plainTextWarnings, warningsOf } from "../../infra/read-config.ts";
import { refusals } from "../support/refusals.ts";
import { deployed, type Settings, settingsOf, testDate } from "../support/stack.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const groupType = "aws:eks/nodeGroup:NodeGroup";
const poolType = "gcp:container/nodePool:NodePool";
const oidc = { issuer: "https://login.example.com", audience: "tiltyard" };
const image = "registry.example.com/catalog:1";
const host = "catalog.example.com";
const kubeconfigText = JSON.stringify({
  clusters: [{ name: "yard", cluster: { server: "https://yard.example.com" } }],
  users: [{ name: "ann", user: { token: "secret" } }],
  contexts: [{ name: "yard", context: { cluster: "yard", user: "ann" } }],
  "current-context": "yard",
});
const parse = (variant: string, settings: Settings) => () => parseStackConfig(settingsOf(variant, settings), testDate);
const withCatalog = (catalog: object) => ({ catalog: { image, ...catalog } });

describe("node groups on EKS", () => {
  const eks = deployed("eks");

  test("have one zone each for heads, so that AWS does not rebalance them", async () => {
    const { all } = await eks;
    const heads = all(groupType).filter(({ name }) => name.startsWith("eks-head"));
    expect(heads.map(({ name, inputs }) => [name, inputs.subnetIds.length])).toEqual([
      ["eks-head-eu-central-1a", 1],
      ["eks-head-eu-central-1c", 1],
      ["eks-head-eu-central-1d", 1],
    ]);
    expect(refusals((await eks).resources)).toEqual([]);
  });

  test("keep their heads in the zones of the settings that remain when another zone leaves or joins them", async () => {
    const groupsIn = async (...letters: string[]) => {
      const nodePools = [
        { name: "core", role: "core", machineType: "m7i.xlarge", min: 1 },
        { name: "head", role: "head", machineType: "m7i.xlarge", zones: letters.map((each) => `eu-central-1${each}`) },
        { name: "cpu", role: "workerCpu", machineType: "m7i.xlarge" },
      ];
      const heads = (await deployed("eks", { nodePools })).all(groupType).filter(({ name }) => name.includes("-head"));
      return new Map(heads.map(({ name, inputs }) => [name, inputs.subnetIds]));
    };
    const [before, after] = [await groupsIn("a", "c"), await groupsIn("d", "c")];
    const both = [...before].filter(([name]) => after.has(name));
    expect(both).toHaveLength(1);
    for (const [name, subnets] of both) expect(after.get(name)).toEqual(subnets);
  });

  test("keep the release of their image until the settings name another one", async () => {
    const releaseOf = async (settings: Settings) =>
      (await deployed("eks", settings)).one(groupType, "-cpu").inputs.releaseVersion;
    expect((await eks).one(groupType, "-cpu").inputs.releaseVersion).toBeUndefined();
    expect(await releaseOf({ nodeRelease: "1.36.1-20261118" })).toBe("1.36.1-20261118");
    expect(await releaseOf({ nodeRelease: "newest" })).toContain("/1.36/amazon-linux-2023/");
  });

  test("end a node before they start the next one when they have GPUs, and start it first otherwise", async () => {
    const { one } = await eks;
    expect(one(groupType, "-gpu").inputs.updateConfig.updateStrategy).toBe("MINIMAL");
    expect(one(groupType, "-cpu").inputs.updateConfig.updateStrategy).toBe("DEFAULT");
  });
});

test("disruption budgets never protect a pod that is not ready", async () => {
  const { all } = await deployed("existing", { teams: [{ name: "vision", clientPrincipals: ["group:vision"] }] });
  const budgets = all("kubernetes:policy/v1:PodDisruptionBudget");
  expect(budgets).toHaveLength(3);
  for (const { inputs } of budgets) expect(inputs.spec.unhealthyPodEvictionPolicy).toBe("AlwaysAllow");
});

describe("load balancers of GKE", () => {
  const annotations = { "networking.gke.io/managed-certificates": "catalog" };

  test("have no TLS entry with a managed certificate, because the controller would read its secret", async () => {
    const ingress = { host, className: "gce", annotations };
    const { one } = await deployed("gke", withCatalog({ oidc, ingress }));
    expect(one("kubernetes:networking.k8s.io/v1:Ingress").inputs.spec).not.toHaveProperty("tls");
  });

  test.each([
    ["an internal ingress", { ingress: { host, className: "gce-internal", tlsSecret: "tls" } }],
    ["a gateway", { gateway: { host, name: "internal", namespace: "gateways" } }],
  ])("are reached through %s from the proxies of the stack's network", async (_, entry) => {
    const { one, resources } = await deployed("gke", withCatalog({ oidc, ...entry }));
    expect(one("gcp:compute/subnetwork:Subnetwork", "-proxies").inputs).toMatchObject({
      ...{ purpose: "REGIONAL_MANAGED_PROXY", role: "ACTIVE", ipCidrRange: "10.50.0.0/23" },
    });
    expect(one("gcp:compute/firewall:Firewall").inputs).toMatchObject({
      sourceRanges: ["10.50.0.0/23"],
      allows: [{ protocol: "tcp", ports: ["2333"] }],
    });
    const [{ from }] = one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "catalog").inputs.spec.ingress;
    expect(from).toContainEqual({ ipBlock: { cidr: "10.50.0.0/23" } });
    expect(refusals(resources)).toEqual([]);
  });

  test("are admitted in an existing network by the settings", () => {
    const ingress = { host, className: "gce-internal", tlsSecret: "tls" };
    const problem = "catalog.allowedCidrs: is required with gce-internal in an existing network";
    expect(parse("existing-gke", withCatalog({ oidc, ingress }))).toThrow(problem);
    const admitted = withCatalog({ oidc, ingress, allowedCidrs: ["10.9.0.0/23"] });
    expect(parse("existing-gke", admitted)).not.toThrow();
  });
});

describe("the first nodes of a pool on GKE", () => {
  test.each([
    ["small-region1", 2],
    ["europe-west4", 3],
    ["us-central1", 3],
  ])("are at most its maximum in %s", async (region, count) => {
    const { one, resources } = await deployed("gke", { "gcp:region": region });
    expect(one(poolType, "core").inputs.nodeLocations).toHaveLength(count);
    expect(one(poolType, "cpu").inputs.nodeLocations.length).toBeGreaterThanOrEqual(count);
    expect(refusals(resources)).toEqual([]);
  });

  test("are refused if the zones of the settings need more", () => {
    const zones = ["us-central1-a", "us-central1-b"];
    const core = { name: "core", role: "core", machineType: "e2-standard-4", min: 1, max: 1, zones };
    const others = ["head", "workerCpu"].map((role) => ({
      name: role.toLowerCase(),
      role,
      machineType: "n2-standard-8",
    }));
    const problem = "nodePools.0.zones: GKE begins with equally many nodes in each zone, here with 2, more than max";
    expect(parse("gke", { nodePools: [core, ...others] })).toThrow(problem);
  });
});

test("Kueue decides on Ray's objects in namespaces with a queue alone, also of other stacks, and is protected", async () => {
  const quota = { cpu: 8, memory: "32Gi" };
  const { one, resources } = await deployed("existing", { quota, kueue: { source: "helm" } });
  const release = one("kubernetes:helm.sh/v3:Release", "ray-kueue");
  const { controllerManager, managerConfig } = release.inputs.values;
  expect(controllerManager).toMatchObject({
    replicas: 2,
    podDisruptionBudget: { enabled: true },
    manager: { priorityClassName: "tiltyard-control-lancedb" },
  });
  const { integrations, managedJobsNamespaceSelector } = parseYaml(managerConfig.controllerManagerConfigYaml);
  expect(integrations.frameworks).toEqual(["ray.io/rayjob", "ray.io/raycluster"]);
  // Kueue leaves a job that waits for a queue in another namespace suspended forever.
  const teams = [{ name: "vision", quota }];
  const others = await deployed("existing", { namespace: "other", quota, kueue: { source: "none" }, teams });
  const labelsOf = (deployment: typeof others, name: string) =>
    deployment.one("kubernetes:core/v1:Namespace", name).inputs.metadata.labels;
  for (const name of ["ray", "ray-vision"])
    expect(labelsOf(others, name)).toMatchObject(managedJobsNamespaceSelector.matchLabels);
  const label = Object.keys(managedJobsNamespaceSelector.matchLabels);
  expect(Object.keys(labelsOf(others, "catalog"))).not.toEqual(expect.arrayContaining(label));
  expect(Object.keys(labelsOf(await deployed("existing", { quota }), "ray"))).not.toEqual(
    expect.arrayContaining(label),
  );
  const operator = resources.find(({ name, type }) => name === "ray-operator" && type.endsWith(":Release"));
  expect(release.dependencies).toContain(operator?.urn);
});

describe("settings that an API server or a cloud would refuse", () => {
  const claim = { ...withCatalog({ volumeClaim: "tables" }) };
  const folder = temporaryFolder("kubeconfig");

  test.each<[string, Settings, string]>([
    ["existing", { namespace: "kube-system" }, "namespace: must not be a namespace of Kubernetes"],
    ["existing", { namespace: "default" }, "namespace: must not be a namespace of Kubernetes"],
    ["existing", withCatalog({ namespace: "kube-public" }), "catalog.namespace: must not be a namespace of"],
    [
      "existing",
      { teams: [{ name: "a", namespace: "kube-node-lease" }] },
      "teams.0.namespace: must not be a namespace",
    ],
    [
      "existing",
      { operator: { source: "none", namespace: "kuberay" }, teams: [{ name: "a", namespace: "kuberay" }] },
      "teams.0.namespace: is already in use: kuberay",
    ],
    ["existing", { serviceAccount: "default" }, "serviceAccount: must not be default"],
    ["existing", withCatalog({ volumeSize: "0" }), "catalog.volumeSize: must be a Kubernetes quantity"],
    ["existing", withCatalog({ resources: { cpu: "0" } }), "catalog.resources.cpu: must be a Kubernetes quantity"],
    [
      "existing",
      { ...claim, bucket: "file:///data" },
      "bucket: must not be a folder of the catalog's pod: /data, /tmp",
    ],
    ["existing", { ...claim, bucket: "file:///mnt/a b" }, "bucket: must have a folder without spaces"],
    ["existing", { serviceAccountAnnotations: { "a b": "c" } }, "serviceAccountAnnotations.a b: must be a label"],
    [
      "existing",
      withCatalog({ oidc, ingress: { host, className: "Nginx X", tlsSecret: "tls" } }),
      "catalog.ingress.className: must be lower-case letters",
    ],
    [
      "existing",
      withCatalog({ oidc, ingress: { host: `${"a.".repeat(130)}com`, className: "nginx", tlsSecret: "tls" } }),
      "catalog.ingress.host: ",
    ],
    ["existing", withCatalog({ image: "catalog :1" }), "catalog.image: must be the name of an image"],
    ["existing", withCatalog({ replicas: 1e10 }), "catalog.replicas: "],
    ["existing", withCatalog({ database: { url: "postgres://u:p@h:0/t" } }), "catalog.database.url: must be postgres"],
    [
      "existing",
      withCatalog({ database: { url: "postgres://u:p@h/t?sslmode=prefer" } }),
      "catalog.database.url: must have an sslmode of disable, require, verify-ca, verify-full",
    ],
    ["existing", { kubeconfig: folder }, "kubeconfig: must be the text of a kubeconfig or the path of a file"],
    ["existing", { kubeconfig: "clusters: [\n" }, "kubeconfig: must be a kubeconfig in YAML or JSON"],
    ["existing", { kubeconfig: "a: b\n" }, "kubeconfig: must have a current context with a cluster, or set context"],
    [
      "existing",
      { runner: { rayClusters: { default: { worker_grups: [] } } } },
      "runner.rayClusters.default: has no parameter worker_grups",
    ],
    [
      "eks",
      {
        network: {
          vpc: { id: "vpc-1", privateSubnetIds: ["a", "b"] },
          publicEndpoint: false,
          authorizedNetworks: ["203.0.113.0/24"],
        },
      },
      "network.authorizedNetworks: must not be set with publicEndpoint: false",
    ],
    ["gke", { network: { proxyCidr: "10.50.0.0/28" } }, "network.proxyCidr: must have a prefix of at most /26"],
  ])("are refused on %s: %j", (variant, settings, problem) => {
    expect(parse(variant, settings)).toThrow(problem);
  });
});

test("machines that only support Hyperdisk get it", () => {
  for (const machine of ["g4-standard-48", "c4d-standard-8", "n4-standard-2", "a3-ultragpu-8g", "a4-highgpu-8g"])
    expect(defaultDisk(machine, "gke")).toBe("hyperdisk-balanced");
  for (const machine of ["e2-standard-4", "n2-standard-8", "g2-standard-16", "a3-highgpu-8g", "n2d-standard-4"])
    expect(defaultDisk(machine, "gke")).toBe("pd-balanced");
});

test.each(["1.30", "1.31"])(
  "Kubernetes %s on GKE is refused after its extended support, without past dates",
  (version) => {
    const today = new Date("2026-11-27");
    const settings = settingsOf("gke", { kubernetesVersion: version });
    expect(() => parseStackConfig(settings, today)).toThrow(
      /ended on 20\d\d-\d\d-\d\d\. Set a later kubernetesVersion$/m,
    );
    const extended = settingsOf("gke", { kubernetesVersion: "1.34", releaseChannel: "EXTENDED" });
    expect(warningsOf(parseStackConfig(extended, today), today).join()).not.toContain("kubernetesVersion");
  },
);

test.each([
  [{ catalog: { image, database: { url: "postgres://u:p@h/t" } } }, "catalog", "catalog.database.url"],
  [{ kubeconfig: kubeconfigText }, "kubeconfig", "kubeconfig"],
])("a credential that is stored as plain text causes a warning: %j", (settings, key, path) => {
  const config = parse("existing", settings)();
  expect(plainTextWarnings(config, [])).toEqual([expect.stringMatching(`^${path}: is plain text`)]);
  expect(plainTextWarnings(config, [`tiltyard:${key}`])).toEqual([]);
  expect(plainTextWarnings(parse("existing", {})(), [])).toEqual([]);
});

test("an existing cluster whose jobs would run in Ray's own image causes a warning", () => {
  const warnings = (settings: Settings) => warningsOf(parse("existing", settings)(), testDate);
  expect(warnings({})).toEqual([expect.stringMatching(/^ray.image: is not set, and jobs/)]);
  expect(warnings({ ray: { image: "registry.example.com/ray:1" } })).toEqual([]);
  expect(warnings({ runner: { enabled: false } })).toEqual([]);
});

test("a stack without a context reports the current one with its cluster", () => {
  const config = { kubeconfig: kubeconfigText };
  expect(contextNotice(parse("existing", config)())).toBe(
    "context: is not set; the stack uses the current context yard (https://yard.example.com)",
  );
  expect(contextNotice(parse("existing", { ...config, context: "yard" })())).toBeUndefined();
  expect(contextNotice(parse("eks", {})())).toBeUndefined();
});

test("an administrator outside of authorizedNetworks waits for an answer only shortly", async () => {
  const cluster = { server: "https://127.0.0.1:1", "insecure-skip-tls-verify": true };
  const kubeconfig = JSON.stringify({
    ...{ apiVersion: "v1", kind: "Config", "current-context": "a", users: [{ name: "a", user: {} }] },
    clusters: [{ name: "a", cluster }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
  });
  const wait = waitUntilAuthorized(kubeconfig, { answerTimeoutMs: 20, pauseMs: 1 });
  await expect(wait).rejects.toThrow(/does not answer: .* network.authorizedNetworks must contain your address/);
});

describe("default workers", () => {
  test.each(["gke", "eks"] as const)(
    "fill the nodes of the default pools on %s as far as the cloud lets them",
    (variant) => {
      const { runner } = parse(variant, {})();
      expect(runner.rayClusters).toEqual({
        default: { worker_groups: [{ num_cpus: 5, memory: "17Gi" }] },
        gpu: { worker_groups: [{ num_gpus: 1, num_cpus: 15, memory: "51Gi" }] },
      });
    },
  );

  test("fit smaller nodes of the settings, and need no GPU that no pool has", () => {
    const pools = [
      { name: "core", role: "core", machineType: "m7i.xlarge", min: 1 },
      { name: "head", role: "head", machineType: "m7i.xlarge" },
      { name: "cpu", role: "workerCpu", machineType: "r7i.xlarge" },
    ];
    const { runner } = parse("eks", { nodePools: pools })();
    expect(runner.rayClusters).toEqual({ default: { worker_groups: [{ num_cpus: 3, memory: "25Gi" }] } });
  });

  test("are derived from the names of machines", () => {
    const gke = ["e2-standard-4", "n2-highmem-8", "n2-custom-6-24576", "g2-standard-16", "a4-highgpu-8g"];
    expect(gke.map((each) => capacityOf(each, "gke"))).toEqual([
      { cpus: 4, memoryGb: 16 },
      { cpus: 8, memoryGb: 64 },
      { cpus: 6, memoryGb: 24 },
      { cpus: 16, memoryGb: 64 },
      undefined,
    ]);
    expect(["m7i.large", "c7i.2xlarge", "r7i.xlarge", "p5.48xlarge"].map((each) => capacityOf(each, "eks"))).toEqual([
      { cpus: 2, memoryGb: 8 },
      { cpus: 8, memoryGb: 16 },
      { cpus: 4, memoryGb: 32 },
      undefined,
    ]);
  });
});

test("pods of Ray run as their own account in each namespace of a platform, by the API server's own admission", async () => {
  const teams = [{ name: "vision", clientPrincipals: ["group:vision"] }];
  const { one } = await deployed("existing", { teams });
  const { spec, metadata } = one(
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy",
    "ray-clients",
  ).inputs;
  expect(spec.failurePolicy).toBe("Fail");
  const expressions = spec.validations.map(({ expression }: { readonly expression: string }) => expression);
  const restricting = expressions.filter((each: string) => each.includes("['geneva-service-account', 'default', '']"));
  expect([restricting.length, expressions.length]).toEqual([1, 5]);
  const binding = one("kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding", "ray-clients")
    .inputs.spec;
  expect([binding.policyName, binding.validationActions]).toEqual([metadata.name, ["Deny"]]);
  expect(binding.matchResources.namespaceSelector.matchExpressions[0].values).toEqual(["lancedb", "lancedb-vision"]);
});

test("namespaces of a stack enforce their Pod Security level on an existing cluster too", async () => {
  const { one } = await deployed("existing");
  const levelOf = (name: string) =>
    one("kubernetes:core/v1:Namespace", name).inputs.metadata.labels["pod-security.kubernetes.io/enforce"];
  expect([levelOf("ray"), levelOf("catalog")]).toEqual(["baseline", "restricted"]);
});

test("CloudWatch keeps the logs of its agent for a month, those of nodes too", async () => {
  const groups = (await deployed("eks", { rayLogs: true })).all("aws:cloudwatch/logGroup:LogGroup");
  const ofAgent = groups.filter(({ inputs }) => inputs.name.startsWith("/aws/containerinsights/"));
  expect(ofAgent.map(({ inputs }) => [inputs.name.split("/").at(-1), inputs.retentionInDays])).toEqual([
    ["application", 30],
    ["dataplane", 30],
    ["host", 30],
  ]);
});

test("GKE's pools of GPUs need no further machine for an upgrade", async () => {
  const { one } = await deployed("gke");
  expect(one(poolType, "gpu").inputs.upgradeSettings).toMatchObject({ maxSurge: 0, maxUnavailable: 1 });
  expect(one(poolType, "cpu").inputs.upgradeSettings).toMatchObject({ maxSurge: 1, maxUnavailable: 0 });
});
