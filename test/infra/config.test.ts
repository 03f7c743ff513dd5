import { describe, expect, test } from "vitest";
import { parseStackConfig } from "../../infra/config.ts";
import { deployed, type Settings, settingsOf, testDate } from "../support/stack.ts";

const parse = (variant: string, settings?: Settings) => parseStackConfig(settingsOf(variant, settings), testDate);
const catalog = { image: "registry.example.com/catalog:1" };
const pool = { name: "core", role: "core", machineType: "m7i.xlarge", min: 1 };
const head = { name: "head", role: "head", machineType: "m7i.xlarge" };
const cpu = { name: "cpu", role: "workerCpu", machineType: "m7i.xlarge" };
const gpu = { name: "gpu", role: "workerGpu", machineType: "g6.xlarge", gpus: 1 };
const oidc = { issuer: "https://sign-in.example.com", audience: "catalog" };
const addon = (kubernetesVersion: string | undefined, version: string) => ({
  kubernetesVersion,
  operator: { source: "gke-addon", version },
});

describe("settings that are not valid", () => {
  test.each<[string, string, Settings, string]>([
    ["no variant", "", {}, "variant: is required; it must be one of existing, existing-gke, existing-eks, gke, eks"],
    ["another variant", "aks", {}, "variant: must be one of existing, existing-gke, existing-eks, gke, eks"],
    ["a misspelled setting", "gke", { nodePool: [] }, "nodePool: is not a setting; did you mean nodePools?"],
    ["a setting that does not exist", "gke", { spaceships: 2 }, "spaceships: is not a setting"],
    [
      "a misspelled setting inside another",
      "gke",
      { catalog: { databse: "sqlite" } },
      "catalog: has no field databse (did you mean database?)",
    ],
    ["a VPC without subnets", "eks", { network: { vpc: { id: "vpc-1" } } }, "vpc.privateSubnetIds: is required"],
    ["text for a structure", "gke", { "tiltyard:catalog": "sqlite" }, "catalog: must be an object, not a string"],
    [
      "a namespace that is no name",
      "gke",
      { namespace: "My_Namespace" },
      "namespace: must be at most 63 lower-case letters",
    ],
    ["a label domain that is none", "gke", { labelDomain: "ray" }, "labelDomain: must be a domain"],
    ["no project", "gke", { "gcp:project": "" }, "gcp:project: is required: pulumi config set gcp:project ID"],
    ["a gap inside a setting", "gke", { clientPrincipals: ["user:FILL-IN"] }, "clientPrincipals.0: replace FILL-IN"],
    ["a gap in a structure", "gke", { catalog: { image: "FILL-IN/a" } }, "catalog.image: replace FILL-IN"],
    [
      "litestream: yes",
      "gke",
      { catalog: { litestream: "on" } },
      "catalog.litestream: must be true, false or {bucket: gs",
    ],
    [
      "a quota without memory",
      "gke",
      { teams: [{ name: "vision", quota: { cpu: "8" } }] },
      "teams.0.quota.memory: is required",
    ],
    ["a gap", "gke", { "gcp:project": "FILL-IN" }, "gcp:project: replace FILL-IN with your value"],
    [
      "a zone for a region",
      "gke",
      { "gcp:region": "us-central1-a" },
      "gcp:region: must be a region, such as us-central1",
    ],
    ["a zone for a region", "eks", { "aws:region": "us-east-1a" }, "aws:region: must be a region, such as us-east-1"],
    ["no region", "eks", { "aws:region": "" }, "aws:region: is required: pulumi config set aws:region REGION"],
    ["a Ray that is too old", "gke", { ray: { version: "2.42.1" } }, "ray.version: must be 2.43 or later, not 2.42.1"],
    [
      "an operator that is too old",
      "eks",
      { operator: { source: "helm", version: "1.0.0" } },
      "operator.version: must be 1.1 or later, not 1.0.0",
    ],
    ["another operator source", "eks", { operator: { source: "olm" } }, "operator.source: must be {source: helm}"],
    ["GKE's add-on elsewhere", "eks", addon("1.31", "1.2"), "operator.source: gke-addon exists on gke only"],
    [
      "GKE's add-on with another Kubernetes",
      "gke",
      addon("1.30", "1.2"),
      "these pairs of kubernetesVersion and operator: 1.30 with 1.1, 1.31 with 1.2; this stack has 1.30 with 1.2",
    ],
    ["GKE's add-on with any Kubernetes", "gke", addon(undefined, "1.1"), "this stack has no certain version with 1.1"],
    [
      "an operator of one's own before 1.3 on GKE",
      "gke",
      { kubernetesVersion: "1.32", operator: { source: "helm", version: "1.2.2" } },
      "operator.version: on gke it must be 1.3 or later, or one of the pairs 1.30 with 1.1, 1.31 with 1.2",
    ],
    ["a version that is a number", "gke", { ray: { version: 2.6 } }, "ray.version: must be in quotes"],
    ["a version that was a number", "gke", { kubernetesVersion: "1.3" }, "kubernetesVersion: must be in quotes"],
    [
      "a spot head",
      "eks",
      { nodePools: [pool, { ...head, spot: true }, cpu] },
      "nodePools.1.spot: a head pool must not be spot",
    ],
    [
      "GPUs without their role",
      "eks",
      { nodePools: [pool, head, { ...cpu, gpus: 1 }] },
      "nodePools.2.role: a pool with GPUs needs the role workerGpu, not workerCpu",
    ],
    [
      "no role at all",
      "eks",
      { nodePools: [pool, head, cpu, { ...gpu, role: undefined }] },
      "nodePools.3.role: must be one of core, head, workerCpu, workerGpu",
    ],
    [
      "the GPU role without GPUs",
      "eks",
      { nodePools: [pool, head, cpu, { ...gpu, gpus: 0 }] },
      "nodePools.3.gpus: a workerGpu pool needs",
    ],
    ["GPUs of no kind on GKE", "gke", { nodePools: [pool, head, cpu, gpu] }, "nodePools.3.gpuType: is required on gke"],
    ["no head pool", "eks", { nodePools: [pool, cpu] }, "nodePools: no pool has the role head"],
    [
      "two pools of one name",
      "eks",
      { nodePools: [pool, head, cpu, { ...cpu }] },
      "nodePools.3.name: is the name of another pool: cpu",
    ],
    [
      "max below min",
      "eks",
      { nodePools: [pool, head, { ...cpu, min: 5, max: 2 }] },
      "nodePools.2.max: is 2, less than min, which is 5",
    ],
    [
      "a small disk",
      "eks",
      { nodePools: [pool, head, { ...cpu, diskGb: 20 }] },
      "nodePools.2.diskGb: must be at least 30",
    ],
    [
      "no machine",
      "eks",
      { nodePools: [pool, head, { name: "x", role: "workerCpu" }] },
      "nodePools.2.machineType: requires either",
    ],
    [
      "a size that no machine has",
      "eks",
      { nodePools: [pool, head, { name: "x", role: "workerCpu", cpus: 7, memoryGb: 9 }] },
      "nodePools.2.cpus: no known eks machine has this size; set machineType",
    ],
    [
      "pools on an existing cluster",
      "existing",
      { nodePools: [pool, head, cpu] },
      "nodePools: is not a setting on existing, but on gke, eks",
    ],
    [
      "no bucket on an existing cluster",
      "existing",
      { bucket: undefined },
      "bucket: is required; it must be s3://... or gs://... or file:///...",
    ],
    ["a bucket of another cloud", "gke", { bucket: "s3://tables" }, "bucket: must be gs://..."],
    ["a bucket that matches others", "eks", { bucket: "s3://tables/*" }, "bucket: must have a folder without spaces"],
    ["a bucket in capitals", "existing", { bucket: "s3://Tables" }, "bucket: must have a bucket name of lower-case"],
    [
      "a setting with a path as its name",
      "existing",
      { "tiltyard:catalog.image": "registry.example.com/catalog:1" },
      "catalog.image: is not a setting; pulumi config set --path tiltyard:catalog.image sets this field of catalog",
    ],
    [
      "a credential among the variables",
      "existing",
      { catalog: { ...catalog, environment: { AWS_SECRET_ACCESS_KEY: "secret" } } },
      "catalog.environment: has no field AWS_SECRET_ACCESS_KEY; catalog.environmentSecret names a secret with credentials",
    ],
    [
      "a kubeconfig that is not there",
      "existing",
      { kubeconfig: "/no/such/file" },
      "kubeconfig: must be the text of a kubeconfig or the path of a file; /no/such/file is not a file",
    ],
    [
      "a kubeconfig for a cluster that is made",
      "gke",
      { kubeconfig: "~/.kube/config" },
      "kubeconfig: is not a setting on gke, but on existing, existing-gke, existing-eks",
    ],
    [
      "no client principal on EKS",
      "eks",
      { clientPrincipals: [] },
      "clientPrincipals: name at least one principal that may assume the client role",
    ],
    [
      "every principal as a client",
      "eks",
      { clientPrincipals: ["*"] },
      "clientPrincipals.0: must be like arn:aws:iam::123456789012:role/NAME",
    ],
    [
      "a client of no kind",
      "gke",
      { clientPrincipals: ["alice@example.com"] },
      "clientPrincipals.0: must be like user:alice@example.com",
    ],
    [
      "a client of no kind",
      "existing",
      { clientPrincipals: ["alice"] },
      "clientPrincipals.0: must be user:NAME or group:NAME",
    ],
    [
      "no image on an existing cluster",
      "existing",
      { catalog: {} },
      "catalog.image: is required on an existing cluster",
    ],
    [
      "a database that no cloud makes",
      "existing",
      { catalog: { ...catalog, database: "postgres" } },
      "catalog.database: must be sqlite or {url: postgres://...}: the stack creates no database",
    ],
    [
      "a URL of another database",
      "gke",
      { catalog: { database: { url: "mysql://x" } } },
      "catalog.database.url: must be postgres://USER:PASSWORD@HOST/DATABASE",
    ],
    ["replicas of SQLite", "gke", { catalog: { replicas: 2 } }, "catalog.replicas: SQLite has one writer"],
    [
      "Litestream of PostgreSQL",
      "gke",
      { catalog: { database: "postgres", litestream: true } },
      "catalog.litestream: requires",
    ],
    [
      "credentials for tables without a role",
      "existing",
      { catalog: { ...catalog, vendCredentials: true } },
      "catalog: has no field vendCredentials",
    ],
    [
      "a public catalog with development tokens",
      "gke",
      { catalog: { ingress: { host: "c.example.com", className: "nginx", tlsSecret: "tls" } } },
      "catalog.oidc: is required with an ingress or a gateway",
    ],
    [
      "a public catalog without TLS",
      "gke",
      { catalog: { ingress: { host: "c.example.com", className: "nginx" } } },
      "catalog.ingress.tlsSecret: ",
    ],
    [
      "files that no node can mount",
      "existing",
      { bucket: "file:///tables", catalog },
      "catalog.volumeClaim: is required with a file: bucket",
    ],
    [
      "a catalog among Ray jobs, which could mount its secret",
      "gke",
      { catalog: { namespace: "lancedb" } },
      "catalog.namespace: must not be namespace",
    ],
    [
      "backups where Ray jobs write",
      "eks",
      { bucket: "s3://ours/tables", catalog: { litestream: { bucket: "s3://ours/backups" } } },
      "catalog.litestream.bucket: must be another bucket than that of the tables",
    ],
    [
      "data to keep that nothing keeps",
      "gke",
      { keepData: true, catalog: { litestream: false } },
      "keepData: the volume of SQLite is deleted with the cluster; use catalog.litestream or PostgreSQL",
    ],
    [
      "GPUs beside machines that say nothing of them",
      "gke",
      {
        nodePools: [...[pool, head, cpu], { ...gpu, machineType: "n1-standard-8", gpuType: "nvidia-tesla-t4" }],
      },
      "nodePools.3.zones: is required for GPUs that are attached to n1 machines",
    ],
    [
      "a taint of no kind",
      "eks",
      { nodePools: [pool, head, { ...cpu, taints: [{ key: "team", effect: "Never" }] }] },
      "nodePools.2.taints.0.effect: must be one of NoSchedule, PreferNoSchedule, NoExecute",
    ],
    [
      "a private endpoint of a network without clients",
      "eks",
      { network: { publicEndpoint: false } },
      "network.publicEndpoint: must be true if the stack creates its network",
    ],
    [
      "addresses with bits of a host",
      "eks",
      { network: { cidr: "10.0.0.1/16" } },
      "network.cidr: must begin at its first address",
    ],
    [
      "a network that is too large for AWS",
      "eks",
      { network: { cidr: "10.0.0.0/8" } },
      "network.cidr: must be from /16 to /24 with three zones",
    ],
    [
      "a network that is too small for its zones",
      "eks",
      { network: { cidr: "10.0.0.0/23", zones: ["a", "b", "c", "d"] } },
      "network.cidr: must be from /16 to /22 with more than three zones",
    ],
    [
      "addresses of a control plane that are more than it takes",
      "gke",
      { network: { controlPlaneCidr: "10.49.0.0/24" } },
      "network.controlPlaneCidr: must be a /28",
    ],
    [
      "ranges that overlap",
      "gke",
      { network: { cidr: "10.45.0.0/16" } },
      "network.podCidr: overlaps network.cidr: 10.44.0.0/14, 10.45.0.0/16",
    ],
    [
      "a cluster's name that GKE does not take",
      "gke",
      { clusterName: "a-name-of-forty-one-characters-is-too-long" },
      "clusterName: must begin with a letter and have at most 40 characters on gke",
    ],
    [
      "a name that no cluster of GKE has, and no repository of its images",
      "existing-gke",
      { clusterName: "a-name-of-forty-one-characters-is-too-long" },
      "clusterName: must begin with a letter and have at most 40 characters on gke",
    ],
    [
      "a cluster's name that no repository of ECR can have",
      "eks",
      { clusterName: "our--cluster" },
      "clusterName: must begin with a letter and have no two dashes in a row on eks",
    ],
    [
      "a cluster's name that is too long for the client's role",
      "eks",
      { clusterName: "a-name-of-forty-six-characters-that-is-too-lon" },
      "clientRole: roles of IAM have at most 64 characters: geneva-client-role-a-name-of",
    ],
    [
      "a team's name that is too long for its role",
      "eks",
      {
        clientRole: "r".repeat(60),
        teams: [{ name: "vision", clientPrincipals: ["arn:aws:iam::123456789012:role/v"] }],
      },
      "clientRole: roles of IAM have at most 64 characters: rrr",
    ],
    ["a role's name that is none", "eks", { clientRole: "our role" }, "clientRole: must be letters, digits"],
    ["a label domain with an empty part", "eks", { labelDomain: "a..example.com" }, "labelDomain: must be a domain"],
    ["a label domain of Kubernetes", "eks", { labelDomain: "node.kubernetes.io" }, "labelDomain: must not be of kub"],
    [
      "a label key that is none",
      "gke",
      { labelKeys: { head: "ray head" } },
      "labelKeys.head: must be at most 63 letters, digits",
    ],
    [
      "one label for two roles",
      "gke",
      { labelKeys: { head: "ray", workerCpu: "ray" } },
      "labelKeys.workerCpu: is that of head: pods select nodes by it",
    ],
    [
      "a label that Kubernetes refuses",
      "eks",
      { nodePools: [pool, head, { ...cpu, labels: { "a b": "1" } }] },
      "nodePools.2.labels.a b: must be a label such as team or example.com/team",
    ],
    [
      "the value of a label that Kubernetes refuses",
      "eks",
      { nodePools: [pool, head, { ...cpu, labels: { team: "a b" } }] },
      "nodePools.2.labels.team: must be at most 63 letters, digits, dashes",
    ],
    [
      "a taint that Kubernetes refuses",
      "eks",
      { nodePools: [pool, head, { ...cpu, taints: [{ key: "a/b/c" }] }] },
      "nodePools.2.taints.0.key: must be a label such as team or example.com/team",
    ],
    [
      "a host with a port",
      "eks",
      { catalog: { oidc, ingress: { host: "catalog.example.com:443", className: "alb", tlsSecret: "tls" } } },
      "catalog.ingress.host: must be the name of a host, e.g. catalog.example.com",
    ],
    [
      "a key of another region",
      "eks",
      { encryptionKey: "arn:aws:kms:us-east-1:123456789012:key/1" },
      "encryptionKey: must be in eu-central-1, where the stack is, not in us-east-1",
    ],
    [
      "a key of another location",
      "existing-gke",
      { encryptionKey: "projects/p/locations/global/keyRings/r/cryptoKeys/k" },
      "encryptionKey: must be in europe-west4, where the stack is, not in global",
    ],
    [
      "a name that no EKS cluster has",
      "existing-eks",
      { clusterName: "prod.1" },
      "clusterName: must be at most 100 letters, digits, dashes and underscores",
    ],
    [
      "a secret of another region",
      "existing-eks",
      {
        imageCache: {
          dockerHubCredentials: "arn:aws:secretsmanager:us-east-1:123456789012:secret:ecr-pullthroughcache/hub",
        },
      },
      "imageCache.dockerHubCredentials: must be in eu-central-1, where the stack is, not in us-east-1",
    ],
    [
      "one zone, where EKS requires two",
      "eks",
      { network: { zones: ["eu-central-1a"] } },
      "network.zones: must name at least two zones",
    ],
    [
      "an administrator of no kind",
      "eks",
      { adminPrincipals: ["alice"] },
      "adminPrincipals.0: must be like arn:aws:iam::123456789012:role/NAME",
    ],
    [
      "a window of no kind",
      "gke",
      { maintenance: { recurrence: "weekends" } },
      "maintenance.recurrence: must be a rule of RFC 5545",
    ],
    [
      "a window that is too short",
      "gke",
      { maintenance: { start: "2026-01-03T00:00:00Z", end: "2026-01-03T02:00:00Z" } },
      "maintenance.end: must be four hours after start, or later",
    ],
    ["addresses that are none", "gke", { network: { cidr: "10.0.0.0" } }, "network.cidr: must be a range of addresses"],
  ])("are reported with their path: %s on %s", (_, variant, settings, message) => {
    expect(() => parse(variant, settings)).toThrow(message);
  });

  test("reports all invalid settings at once, before the first resource", async () => {
    const settings = {
      ray: { version: "2.9" },
      operator: { source: "helm", version: "1.0" },
      clientPrincipals: ["bob"],
      nodePools: [pool, { ...head, machineType: undefined, cpus: 3, memoryGb: 3 }, cpu],
    };
    const error = await deployed("eks", settings).catch((caught: unknown) => caught);
    expect(String(error)).toMatch(/nodePools.1.cpus.*ray.version.*operator.version.*clientPrincipals.0/s);
    const early = await deployed("eks", { namespace: "A", labelDomain: "B" }).catch(String);
    expect(early).toMatch(/namespace.*labelDomain/s);
  });

  test("do not show what may be a secret", () => {
    const url = "mysql://user:hunter2@host/db";
    expect(() => parse("gke", { catalog: { database: { url } } })).toThrow(/^((?!hunter2).)*$/s);
  });
});

describe("settings", () => {
  test.each([
    ["gke", { kubernetesVersion: "1.30", operator: { source: "helm", version: "1.1.1" } }],
    ["gke", { kubernetesVersion: "1.33", operator: { source: "helm", version: "1.3.0" } }],
    ["gke", addon("1.31", "1.2")],
    ["gke", addon("1.30", "1.1")],
    ["eks", { operator: { source: "helm", version: "1.1.0" } }],
    ["existing", { operator: { source: "none" } }],
    ["gke", { ray: { version: "2.43.0" } }],
  ] as const)("may pair versions that are known to work: %s %j", (variant, settings) => {
    expect(parse(variant, settings)).toMatchObject(settings);
  });

  test("install the operator from its chart by default", () => {
    expect(parse("eks", { operator: { version: "1.4.2" } }).operator).toMatchObject({
      source: "helm",
      version: "1.4.2",
    });
  });

  test("have Geneva's own names as defaults", () => {
    expect(parse("eks")).toMatchObject({
      namespace: "lancedb",
      serviceAccount: "geneva-service-account",
      clientRole: "geneva-client-role",
      labelDomain: "geneva.lancedb.com",
    });
  });

  test("name a client role for each cluster of an account, the first one as Geneva does", () => {
    expect(parse("eks", { clusterName: "second" })).toMatchObject({ clientRole: "geneva-client-role-second" });
    expect(parse("eks", { clusterName: "second", clientRole: "ours" })).toMatchObject({ clientRole: "ours" });
  });

  test("name the image with CUDA's libraries for workers with a GPU, unless another image is named", () => {
    expect(parse("gke", { ray: { version: "2.50.0" } }).ray.gpuImage).toBe("rayproject/ray:2.50.0-py312-gpu");
    expect(parse("gke", { ray: { image: "example.com/ray:1" } }).ray.gpuImage).toBe("example.com/ray:1");
    const both = { image: "example.com/ray:1", gpuImage: "example.com/ray:1-gpu" };
    expect(parse("gke", { ray: both }).ray).toMatchObject(both);
  });

  test("place the catalog in a namespace of its own", () => {
    expect(parse("gke", { namespace: "features" }).catalog.namespace).toBe("features-catalog");
  });

  test("name a Ray image that has the version asked for, or another one", () => {
    expect(parse("gke", { ray: { version: "2.50.0" } }).ray.image).toBe("rayproject/ray:2.50.0-py312");
    expect(parse("gke", { ray: { image: "example.com/ray:1" } }).ray.image).toBe("example.com/ray:1");
  });

  test.each([
    ["eks", 8, 32, "m7i.2xlarge"],
    ["eks", 16, 128, "r7i.4xlarge"],
    ["gke", 8, 32, "n2-custom-8-32768"],
  ])("find the machine for a number of CPUs: %s", (variant, cpus, memoryGb, machineType) => {
    const nodePools = [pool, head, { name: "x", role: "workerCpu", cpus, memoryGb }];
    const config = parse(variant, { nodePools });
    expect("nodePools" in config && config.nodePools[2]?.machineTypes).toEqual([machineType]);
  });
});

describe("a token of Ray clusters", () => {
  test.each([
    ["the pinned versions", {}, "token"],
    ["an earlier Ray", { ray: { version: "2.51.0" } }, "none"],
    ["an earlier operator", { operator: { version: "1.5.0" } }, "none"],
    ["an operator of unknown version", { operator: { source: "none" } }, "token"],
    ["a stack that turns it off", { ray: { auth: "none" } }, "none"],
  ])("is required or not as the versions allow: %s", (_, settings, auth) => {
    expect(parse("existing", settings).ray.auth).toBe(auth);
  });

  test.each([
    [{ ray: { version: "2.51.0", auth: "token" } }, "ray.auth: token needs a ray.version of 2.52 or later"],
    [
      { ray: { auth: "token" }, operator: { version: "1.5.0" } },
      "ray.auth: token needs an operator.version of 1.6 or later",
    ],
  ])("is refused where the versions have none: %j", (settings, message) => {
    expect(() => parse("existing", settings)).toThrow(message);
  });

  test("is an output for clients and jobs", async () => {
    const { outputs, one } = await deployed("existing");
    expect(outputs.rayAuth).toBe("token");
    const file = one("kubernetes:core/v1:ConfigMap", "runner").inputs.data["runner.yaml"];
    expect(JSON.parse(file).rayClusters.default.auth).toBe("token");
  });
});
