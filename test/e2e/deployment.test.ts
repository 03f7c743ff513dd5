import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defaultPools } from "../../infra/node-pools.ts";
import { catalogImage, describeOnOurs, inTurn, isOurs, together, useCluster } from "./cluster.ts";
import { installDefinitions, monitoringDefinitions } from "./kubernetes/definitions.ts";
import { addPlatformNodes } from "./platform-nodes.ts";
import { nameOf, type Recorded } from "./providers/record.ts";
import { DeployedStack } from "./stack.ts";

const image = (tag: string) => ({ image: `${catalogImage}:${tag}` });
/** The size to which the catalog's volume grows. */
const larger = { volumeSize: "30Gi" };

/** The actions of the upgrade by resource. The disk type of a spot pool cannot change on a cloud, so the pool is replaced. */
const upgrades: Readonly<Record<string, readonly string[]>> = {
  existing: ["update catalog", "update catalog-data", "update ray-operator", "update runner"],
  gke: [
    ...["create gke-cpu", "create gke-more-gpus", "delete gke-cpu", "update catalog", "update catalog-data"],
    ...["update gke", "update gke-gpu", "update gke-head", "update ray-operator", "update runner"],
  ],
  // A node group has a separate version.
  eks: [
    ...["create eks-cpu", "create eks-more-gpus", "delete eks-cpu", "update catalog", "update catalog-data"],
    ...["update eks-autoscaler", "update eks-core", "update eks-coredns", "update eks-ebs", "update eks-eksCluster"],
    ...[
      "update eks-gpu",
      "update eks-head-eu-central-1a",
      "update eks-head-eu-central-1c",
      "update eks-head-eu-central-1d",
    ],
    ...["update eks-node-monitoring", "update ray-operator", "update runner"],
  ],
};
const nodeTypes = ["gcp:container/nodePool:NodePool", "aws:eks/nodeGroup:NodeGroup"];
/** The types that must not be replaced while a stack is in use. */
const withContent = [
  ...["gcp:container/cluster:Cluster", "aws:eks/cluster:Cluster", "gcp:storage/bucket:Bucket", "aws:s3/bucket:Bucket"],
  ...["kubernetes:core/v1:Namespace", "kubernetes:core/v1:PersistentVolumeClaim", ...nodeTypes],
];
/** The types that are created and deleted with their node group. */
const companions = ["aws:ec2/launchTemplate:LaunchTemplate"];

/** The kinds of objects that a stack creates, inside and outside the namespace. */
const kinds = [
  ["v1", "Secret"],
  ["v1", "ServiceAccount"],
  ["v1", "Service"],
  ["v1", "Pod"],
  ["v1", "PersistentVolumeClaim"],
  ["apps/v1", "StatefulSet"],
  ["networking.k8s.io/v1", "NetworkPolicy"],
  ["policy/v1", "PodDisruptionBudget"],
  ["rbac.authorization.k8s.io/v1", "Role"],
  ["rbac.authorization.k8s.io/v1", "RoleBinding"],
] as const;

const cluster = useCluster();

beforeAll(async () => {
  if (!isOurs) return;
  await addPlatformNodes(cluster().api);
  await installDefinitions(cluster().api, monitoringDefinitions);
});

type Variant = "existing" | "existing-gke" | "existing-eks" | "gke" | "eks";
const title = (variant: Variant) => `a stack of the variant ${variant}`;
describe(
  title("existing"),
  together,
  inTurn("under Pulumi's engine", () => itsTests("existing")),
);
// A stack on an existing cluster of a cloud differs from `existing` only in its identities, bucket and settings.
for (const [cloud, tags] of [
  ["gke", []],
  ["eks", []],
  ["existing-gke", ["weekly"]],
  ["existing-eks", ["weekly"]],
] as const)
  describeOnOurs(
    title(cloud),
    "the storage class of that cloud",
    inTurn("under Pulumi's engine", () => itsTests(cloud)),
    { ...together, tags: [...tags] },
  );

function itsTests(variant: Variant): void {
  // The names must be unique among stacks and variants.
  const namespace = `tiltyard-e2e-${variant}`;
  const catalogNamespace = `${namespace}-catalog`;
  const serviceAccount = `${namespace}-ray`;
  let stack: DeployedStack;
  let settings: Record<string, unknown>;

  beforeAll(async () => {
    const own =
      variant === "gke" || variant === "eks" ? {} : { kubeconfig: cluster().kubeconfigPath, deleteNamespace: true };
    const ofCloud = variant === "existing" ? {} : { deletionProtection: false };
    settings = { ...own, ...ofCloud, namespace, serviceAccount };
    stack = await DeployedStack.create(cluster(), variant);
  });
  afterAll(async () => {
    if (!isOurs) await stack.destroy();
  });

  const isWhole = !variant.startsWith("existing-");
  // existing-objects.test.ts kills the variant `existing`.
  const isKilled = isWhole && variant !== "existing";
  test.runIf(isKilled)("survives a killed engine next to a namespace of a person", async () => {
    const metadata = { name: catalogNamespace };
    await cluster().api.create({ apiVersion: "v1", kind: "Namespace", metadata });
    await stack.killedUp({ ...settings, catalog: image("1") }, "kubernetes:apps/v1:StatefulSet");
  });

  test("starts without a warning of the API server, with a ready catalog", async () => {
    const changes = await stack.up({ ...settings, catalog: image("1") });
    expect(Object.keys(changes)).toEqual(isKilled ? ["create", "same"] : ["create"]);
    expect(warnings(stack.record)).toEqual([]);
    const catalog = await cluster().api.get("apps/v1", "StatefulSet", "tiltyard-catalog", catalogNamespace);
    expect(catalog.status.readyReplicas).toBe(1);
  });

  test("creates nodes before the namespace, and the namespace before its objects", async () => {
    const made = stack.record
      .filter(({ action }) => action === "create")
      .map(({ type, urn }) => `${type.replace("kubernetes:", "")} ${nameOf(urn)}`);
    const indexOf = (resource: string) => {
      expect(made).toContain(resource);
      return made.indexOf(resource);
    };
    if (variant !== "eks") {
      // The two namespaces do not depend on each other.
      for (const inRays of ["core/v1:ServiceAccount ray", "helm.sh/v3:Release ray-operator"])
        expect(indexOf(inRays)).toBeGreaterThan(indexOf("core/v1:Namespace ray"));
      const volume = "core/v1:PersistentVolumeClaim catalog-data";
      for (const inCatalogs of ["core/v1:Secret catalog", volume, "apps/v1:StatefulSet catalog"])
        expect(indexOf(inCatalogs)).toBeGreaterThan(indexOf("core/v1:Namespace catalog"));
    }
    // The emulated clouds respond immediately, so the order of creation does not prove the dependencies.
    const { resources } = JSON.parse(stack.state).checkpoint.latest;
    const nodes = resources.filter(({ type }: { type: string }) => nodeTypes.includes(type));
    expect(nodes.length > 0).toBe(variant === "gke" || variant === "eks");
    // The stack only reads the namespace kube-system of an existing cluster.
    const namespaces = resources.filter(
      ({ type, external }: { type: string; external?: boolean }) =>
        type === "kubernetes:core/v1:Namespace" && external !== true,
    );
    expect(namespaces).toHaveLength(2);
    for (const { dependencies = [] } of namespaces)
      expect(dependencies).toEqual(expect.arrayContaining(nodes.map(({ urn }: { urn: string }) => urn)));
  });

  test("keeps no secret in its state as it is", async () => {
    const { catalogApiKey } = stack.outputs;
    expect(catalogApiKey).toMatch(/^\w{48}$/);
    expect(stack.state).not.toContain(catalogApiKey);
    expect(stack.state).not.toContain(Buffer.from(String(catalogApiKey)).toString("base64"));
    const secrets = await cluster().api.list(
      "v1",
      "Secret",
      catalogNamespace,
      "app.kubernetes.io/name=tiltyard-runner",
    );
    const [runnerKey] = secrets.map(({ data }) => data.TILTYARD_API_KEY);
    expect(stack.state).not.toContain(runnerKey);
    expect(stack.state).not.toContain(Buffer.from(runnerKey, "base64").toString());
    const { token } = cluster().kubeConfig().getCurrentUser() ?? {};
    expect(token).toMatch(/^\w{48}$/);
    expect(stack.state).not.toContain(token);
  });

  test("is found as it was left, and has nothing to do a second time", async () => {
    expect(Object.keys(await stack.refresh())).toEqual(["same"]);
    expect(Object.keys(await stack.preview({ ...settings, catalog: image("1") }))).toEqual(["same"]);
  });

  // The behaviour is the same on all variants, because the API server is the same.
  test.runIf(variant === "existing")("puts back what another client deleted", async () => {
    const policy = ["networking.k8s.io/v1", "NetworkPolicy", "tiltyard-catalog", catalogNamespace] as const;
    await cluster().api.delete(await cluster().api.get(...policy));
    expect(await stack.refresh()).toMatchObject({ delete: 1 });
    expect(await stack.up({ ...settings, catalog: image("1") })).toMatchObject({ create: 1 });
    await cluster().api.get(...policy);
  });

  test.runIf(isWhole)("says before an upgrade what it will do, and does nothing then", async () => {
    const before = { state: stack.state, record: stack.record };
    const planned = await stack.preview({ ...settings, ...upgraded(variant) });
    expect(planned).toMatchObject({ update: expect.any(Number), same: expect.any(Number) });
    expect(planned).not.toHaveProperty("delete");
    expect({ state: stack.state, record: stack.record }).toEqual(before);
    expect(await imageThere()).toBe(image("1").image);
  });

  test.runIf(isWhole)(
    "upgrades the operator, the catalog, Kubernetes and its nodes, and replaces only nodes of another kind",
    async () => {
      const before = stack.record.length;
      await stack.up({ ...settings, ...upgraded(variant) });
      expect(await imageThere()).toBe(image("2").image);
      const done = stack.record.slice(before).filter(({ type }) => !companions.includes(type));
      expect(done.map(({ action, urn }) => `${action} ${nameOf(urn)}`).sort()).toEqual(upgrades[variant]);
      // New nodes must exist before the old ones are deleted.
      for (const replaced of done.filter(({ action }) => action === "delete"))
        expect(done.findIndex(({ action, urn }) => action === "create" && urn === replaced.urn)).toBeLessThan(
          done.indexOf(replaced),
        );
    },
  );

  test("applies a change of every other changeable setting without the replacement of stateful resources", async () => {
    const before = stack.record.length;
    const changes = await stack.up({ ...settings, ...changed(variant) });
    expect(changes.update).toBeGreaterThan(0);
    const done = stack.record.slice(before);
    const gone = done.filter(({ action }) => action === "delete").map(({ type }) => type);
    expect(gone.filter((type) => withContent.includes(type))).toEqual([]);
    expect(warnings(done)).toEqual([]);
    expect(Object.keys(await stack.preview({ ...settings, ...changed(variant) }))).toEqual(["same"]);
  });

  test("destroys all resources, the objects of the namespace first", async () => {
    const before = stack.record.length;
    await stack.destroy();
    const { api } = cluster();
    for (const each of [namespace, catalogNamespace]) {
      for (const [apiVersion, kind] of kinds) expect(await api.list(apiVersion, kind, each)).toEqual([]);
      expect(await api.find({ apiVersion: "v1", kind: "Namespace", metadata: { name: each } })).toBeUndefined();
    }
    for (const kind of ["ClusterRole", "ClusterRoleBinding"]) {
      const named = (await api.list("rbac.authorization.k8s.io/v1", kind)).map(({ metadata }) => metadata.name);
      expect(named.filter((name) => name.startsWith(serviceAccount))).toEqual([]);
    }
    const gone = stack.record.slice(before).map(({ type }) => type);
    const last = gone.indexOf("kubernetes:core/v1:Namespace");
    expect(gone.lastIndexOf("kubernetes:apps/v1:StatefulSet")).toBeLessThan(last);
    for (const type of nodeTypes) if (gone.includes(type)) expect(gone.indexOf(type)).toBeGreaterThan(last);
  });

  test.runIf(isWhole)("starts again after its destruction", async () => {
    expect(Object.keys(await stack.up({ ...settings, ...changed(variant) }))).toEqual(["create"]);
    const catalog = await cluster().api.get("apps/v1", "StatefulSet", "tiltyard-catalog", catalogNamespace);
    expect(catalog.status.readyReplicas).toBe(1);
  });

  test.runIf(isWhole)("has nothing to do after it started again", async () => {
    expect(Object.keys(await stack.preview({ ...settings, ...changed(variant) }))).toEqual(["same"]);
  });

  async function imageThere(): Promise<string> {
    const [pod] = await cluster().api.list("v1", "Pod", catalogNamespace, "app.kubernetes.io/name=tiltyard-catalog");
    return pod?.spec.containers[0].image;
  }
}

/**
 * Returns settings with a different catalog and operator. A stack with nodes also has a different version of Kubernetes
 * and changed nodes.
 */
function upgraded(variant: Variant): Record<string, unknown> {
  const both = { catalog: { ...image("2"), ...larger }, operator: { version: "1.6.0" } };
  if (variant !== "gke" && variant !== "eks") return both;
  // This version is later than the default of EKS and than all versions whose support can end.
  return { ...both, kubernetesVersion: "1.37", nodePools: upgradedPools(variant) };
}

function upgradedPools(variant: "gke" | "eks") {
  return defaultPools(variant).flatMap((pool) => {
    if (pool.name === "head") return [{ ...pool, diskGb: 150 }];
    if (pool.name === "cpu") return [{ ...pool, spot: false }];
    if (pool.name === "gpu")
      return [
        { ...pool, max: 2 * pool.max },
        { ...pool, name: "more-gpus" },
      ];
    return [pool];
  });
}

const clients: Readonly<Record<Variant, readonly string[]>> = {
  existing: ["group:ml"],
  "existing-gke": ["group:ml"],
  "existing-eks": ["group:ml"],
  gke: ["user:alice@example.com"],
  eks: ["arn:aws:iam::123456789012:role/others"],
};
const admins = {
  gke: ["group:platform@example.com"],
  eks: ["arn:aws:iam::123456789012:role/platform-engineers"],
} as const;

const keys = {
  // Vended credentials have no right on a key of AWS.
  "existing-eks": undefined,
  eks: "arn:aws:kms:eu-central-1:123456789012:key/1234-abcd",
  "existing-gke": "projects/keys/locations/europe-west4/keyRings/ours/cryptoKeys/tables",
  // On GKE, disks with a different key require different nodes.
  gke: undefined,
} as const;

/** Returns the settings of the upgrade with all other changes that an existing stack supports. */
function changed(variant: Variant): Record<string, unknown> {
  const upgrade = upgraded(variant);
  const litestream = variant === "existing" ? { bucket: "s3://backups" } : true;
  const catalog = {
    ...Object(upgrade.catalog),
    ...{ litestream, rateLimit: 50, allowedNamespaces: ["notebooks"], allowedCidrs: ["203.0.113.0/24"] },
    environment: { TILTYARD_AUDIT_RETENTION: "30d" },
    ...{ egressPorts: [9000], resources: { cpu: "250m", memory: "256Mi" } },
    oidc: { issuer: "https://login.example.com", audience: "tiltyard" },
    ingress: { host: "catalog.example.com", className: "nginx", tlsSecret: "catalog-tls" },
    ...(variant !== "existing" && variant !== "eks" && { vendCredentials: true }),
  };
  const ray = { version: "2.59.0", allowedNamespaces: ["notebooks"] };
  const quota = { cpu: "64", memory: "256Gi" };
  const teams = [{ name: "vision", clientPrincipals: clients[variant], quota }];
  const everywhere = {
    ...{ ...upgrade, catalog, ray, teams, quota, rayLogs: true, clientPrincipals: clients[variant] },
    chartValues: { kuberayOperator: { labels: { team: "platform" } } },
    // A given cluster does not have these kinds of objects.
    ...(isOurs && { kueue: { source: "helm" }, monitoring: monitoring[variant] }),
  };
  if (variant === "existing") return everywhere;
  const imageCache = variant.endsWith("gke") ? true : { dockerHubCredentials };
  const onClouds = { ...everywhere, imageCache, objectVersionDays: 30, keepData: true, encryptionKey: keys[variant] };
  if (variant !== "gke" && variant !== "eks") return onClouds;
  const network = { authorizedNetworks: ["203.0.113.0/24"] };
  const ofCloud = { adminPrincipals: admins[variant], network, nodePools: changedPools(variant) };
  const maintenance = { recurrence: "FREQ=WEEKLY;BYDAY=SU" };
  const tags = { team: "ml" };
  return variant === "gke"
    ? { ...onClouds, ...ofCloud, maintenance, releaseChannel: "RAPID", "gcp:defaultLabels": tags }
    : { ...onClouds, ...ofCloud, ...ofEks, "aws:defaultTags": { tags } };
}

const ofEks = { supportType: "EXTENDED", nodeRelease: "1.37.1-20270118" };
const dockerHubCredentials = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:ecr-pullthroughcache/hub-a1b2c3";
const byOperator = { collector: "prometheus-operator", labels: { release: "prometheus" }, dashboards: true };
const monitoring: Readonly<Record<Variant, object>> = {
  ...{ existing: byOperator, "existing-eks": byOperator, eks: byOperator },
  ...{ "existing-gke": { collector: "google" }, gke: { collector: "google", dashboards: true } },
};

/** Changes taints, labels, disk types and, on GKE, zones. On EKS, different zones require a different group. */
function changedPools(variant: "gke" | "eks") {
  return upgradedPools(variant).map((pool) => {
    if (pool.name === "head") return { ...pool, taints: [{ key: "geneva.lancedb.com/ray-head" }] };
    if (pool.name === "cpu")
      return { ...pool, labels: { team: "vision" }, diskType: variant === "gke" ? "pd-ssd" : "io2" };
    return pool.name === "gpu" && variant === "gke" ? { ...pool, zones: ["europe-west4-b"] } : pool;
  });
}

function warnings(record: readonly Recorded[]): string[] {
  return record.flatMap(({ warnings = [] }) => warnings);
}
