import { describe, expect, test } from "vitest";
import { refuseLostKey } from "../../infra/components/catalog/catalog-secrets-keys.ts";
import { refuseSecondVolume } from "../../infra/components/catalog/catalog-volume.ts";
import { refuseOtherLevels } from "../../infra/components/namespace.ts";
import { annotations } from "../../infra/components/ownership.ts";
import { refuseSecondOperator } from "../../infra/components/ray/ray-definitions.ts";
import {
  type Foundations,
  foundationsAnnotations,
  refuseAbandonedJobs,
  refuseJobsAnywhere,
  refuseMoveFromJobs,
} from "../../infra/components/ray/running-jobs.ts";
import { setMocks } from "../support/pulumi-mocks.ts";
import { deployed } from "../support/stack.ts";

const labels = { "app.kubernetes.io/name": "kuberay-operator" };
const release = { apiVersion: "", kind: "", metadata: { name: "" } };

/** Checks a cluster with an operator of these arguments, and definitions with these labels. */
function check(args: readonly string[] | undefined, definitionLabels = {}): Promise<void> {
  const metadata = { name: "kuberay-operator", namespace: "kuberay-system" };
  const spec = { template: { spec: { containers: [{ command: ["/manager"], args }] } } };
  const operator = { apiVersion: "apps/v1", kind: "Deployment", metadata, spec };
  const live = {
    find: async () => ({ ...release, metadata: { name: "rayclusters.ray.io", labels: definitionLabels } }),
    list: async (_: string, kind: string, selector: string) => {
      expect([kind, selector]).toEqual(["Deployment", "app.kubernetes.io/name=kuberay-operator"]);
      return args === undefined ? [] : [operator];
    },
    disown: async () => {},
  };
  return refuseSecondOperator(["lancedb", "lancedb-vision"], labels)(live, release);
}

test.each([
  [["--enable-leader-election"]],
  [["--watch-namespace", "lancedb"]],
  [["--watch-namespace=others,lancedb-vision"]],
  [["-watch-namespace", "lancedb-vision"]],
])("an operator with the arguments %j is refused a second one", async (args) => {
  await expect(check(args)).rejects.toThrow(
    "the KubeRay operator kuberay-system/kuberay-operator watches lancedb, lancedb-vision already. To use it, set " +
      "operator: {source: none, namespace: kuberay-system}. If it is left from an interrupted up: " +
      "helm uninstall kuberay-operator --namespace kuberay-system",
  );
});

test.each([undefined, ["--watch-namespace", "others,lancedb-other"], ["--watch-namespace=lancedb-visions"]])(
  "an operator with the arguments %j leaves the namespaces of the stack to another one",
  async (args) => {
    await expect(check(args)).resolves.toBeUndefined();
  },
);

test.each([
  ["lancedb-vision,others", "watches lancedb, lancedb-vision already"],
  ["others", undefined],
])("an operator with the namespaces %s in its configuration file is known by them", async (watchNamespace, refusal) => {
  const metadata = { name: "kuberay-operator", namespace: "kuberay-system" };
  const containers = [{ command: ["/manager"], args: ["--config", "/etc/kuberay/config.yaml"] }];
  const operator = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    spec: { template: { spec: { containers } } },
  };
  const live = {
    find: async (_: string, kind: string, name: string) =>
      kind === "ConfigMap"
        ? { ...release, metadata: { name }, data: { "config.yaml": `watchNamespace: "${watchNamespace}"` } }
        : undefined,
    list: async () => [operator],
    disown: async () => {},
  };
  const check = refuseSecondOperator(["lancedb", "lancedb-vision"], labels)(live, release);
  if (refusal === undefined) await expect(check).resolves.toBeUndefined();
  else await expect(check).rejects.toThrow(refusal);
});

/** Checks the creation of the operator in the namespace `features`, next to one that watches the namespace of a team, too. */
async function checkRenamed(isPreview: boolean, itsNamespace: string, owner: string): Promise<void> {
  await setMocks(
    { newResource: ({ name }) => ({ id: name, state: {} }), call: () => ({}) },
    "tiltyard",
    "dev",
    isPreview,
  );
  const operator = {
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "kuberay-operator", namespace: itsNamespace } },
    spec: { template: { spec: { containers: [{ args: ["--watch-namespace", `${itsNamespace},vision`] }] } } },
  };
  const live = {
    find: async (apiVersion: string, kind: string, name: string) =>
      kind === "Namespace"
        ? { apiVersion, kind, metadata: { name, labels: { "tiltyard.dev/stack": owner } } }
        : undefined,
    list: async () => [operator],
    disown: async () => {},
  };
  await refuseSecondOperator(["features", "vision"], labels)(live, release);
}

test("a preview accepts the operator of the stack's former namespace, which the up deletes first", async () => {
  await expect(checkRenamed(true, "lancedb", "organization.tiltyard.dev")).resolves.toBeUndefined();
  const { one } = await deployed("existing");
  expect(one("kubernetes:helm.sh/v3:Release").deleteBeforeReplace).toBe(true);
});

test.each([
  ["an up that has not deleted it", false, "lancedb", "organization.tiltyard.dev"],
  ["the preview of another stack", true, "lancedb", "organization.tiltyard.other"],
  ["a preview of its own namespace, where an interrupted up left it", true, "features", "organization.tiltyard.dev"],
])("an operator that watches the namespace of a team is refused in %s", async (_, isPreview, namespace, owner) => {
  await expect(checkRenamed(isPreview, namespace, owner)).rejects.toThrow(
    `the KubeRay operator ${namespace}/kuberay-operator watches features, vision already`,
  );
});

test("an operator of another person is refused when a team with its namespace joins the stack, unlike the stack's own", async () => {
  const operatorIn = (namespace: string, watched: string) => ({
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "kuberay-operator", namespace } },
    spec: { template: { spec: { containers: [{ args: ["--watch-namespace", watched] }] } } },
  });
  const update = (...operators: readonly ReturnType<typeof operatorIn>[]) =>
    refuseSecondOperator(
      ["lancedb", "vision"],
      labels,
      "update",
    )({ find: async () => undefined, list: async () => operators, disown: async () => {} }, release);
  const own = operatorIn("lancedb", "lancedb");
  await expect(update(own)).resolves.toBeUndefined();
  await expect(update(own, operatorIn("vision", "vision"))).rejects.toThrow("vision/kuberay-operator watches");
  const { one } = await deployed("existing");
  expect(one("kubernetes:helm.sh/v3:Release").hooksOfUpdate).toEqual([expect.stringMatching(/-no-other$/)]);
});

test("an operator that the cluster manages itself is refused a second one", async () => {
  const managed = { "addonmanager.kubernetes.io/mode": "Reconcile" };
  await expect(check(undefined, managed)).rejects.toThrow("Set operator: {source: none}");
});

const before: Foundations = { namespaces: ["lancedb", "lancedb-vision"], serviceAccount: "ray", operator: "none" };
const withoutTeam = { ...before, namespaces: ["lancedb"] };

/** Updates a stack with these foundations, on a cluster with a Ray job or a Ray cluster of these kinds and namespaces. */
function change(former: Foundations, wanted: Foundations, objects: readonly RayObject[]): Promise<void> {
  return refuseAbandonedJobs(wanted)({ list: listOf(objects) }, namespaceOf(wanted), namespaceOf(former));
}

type RayObject = readonly [kind: string, namespace: string, jobDeploymentStatus?: string];

const listOf = (objects: readonly RayObject[]) => async (apiVersion: string, kind: string) =>
  objects
    .filter(([its]) => its === kind)
    .map(([, namespace, jobDeploymentStatus]) => ({
      ...{ apiVersion, kind, metadata: { name: "features", namespace }, status: { jobDeploymentStatus } },
    }));

const namespaceOf = (foundations: Foundations, urn = "urn:own") => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: {
    name: foundations.namespaces[0] ?? "",
    annotations: { ...foundationsAnnotations(foundations), [annotations.urn]: urn },
  },
});

describe.each(["helm", "gke-addon", "none"] as const)("a stack with the operator %s", (operator) => {
  const stack = { ...before, operator };

  test.each(["RayJob", "RayCluster"])("keeps a team that has a %s", async (kind) => {
    const removal = change(stack, { ...withoutTeam, operator }, [[kind, "lancedb-vision"]]);
    await expect(removal).rejects.toThrow(
      `the namespace lancedb-vision leaves the stack, but lancedb-vision has the ${kind} features, which depends on it. ` +
        "Cancel the jobs of the namespace, then: kubectl delete rayjobs,rayclusters --all --namespace lancedb-vision",
    );
  });

  test("removes a team without Ray jobs next to jobs of others", async () => {
    const objects: RayObject[] = [
      ["RayJob", "lancedb"],
      ["RayCluster", "others"],
    ];
    await expect(change(stack, { ...withoutTeam, operator }, objects)).resolves.toBeUndefined();
  });

  test("keeps the service account of running pods, and replaces it after they have ended", async () => {
    const renamed = { ...stack, serviceAccount: "features" };
    const refusal = "the service account ray leaves the stack, but lancedb has the";
    await expect(change(stack, renamed, [["RayCluster", "lancedb"]])).rejects.toThrow(`${refusal} RayCluster`);
    await expect(change(stack, renamed, [["RayJob", "lancedb", "Running"]])).rejects.toThrow(`${refusal} RayJob`);
    await expect(change(stack, renamed, [["RayJob", "lancedb", "Complete"]])).resolves.toBeUndefined();
  });

  test("keeps its operator while a job depends on it, and an operator of others never", async () => {
    const removed = { ...stack, operator: operator === "none" ? "helm" : "none" } as const;
    const change_ = change(stack, removed, [["RayJob", "lancedb-vision", "Complete"]]);
    if (operator === "none") await expect(change_).resolves.toBeUndefined();
    else await expect(change_).rejects.toThrow("the operator leaves the stack, but lancedb-vision has the RayJob");
  });
});

test("a cluster keeps its own operator while any of its namespaces has a Ray job", async () => {
  await expect(refuseJobsAnywhere({ list: listOf([["RayCluster", "others"]]) })).rejects.toThrow(
    "the operator leaves the stack, but others has the RayCluster features",
  );
  await expect(refuseJobsAnywhere({ list: listOf([]) })).resolves.toBeUndefined();
});

/** Renames the namespace `lancedb` of a stack, on a cluster with Ray jobs in these namespaces. */
async function rename(jobs: readonly string[], urn = "urn:own"): Promise<void> {
  await setMocks({ newResource: ({ name }) => ({ id: name, state: {} }), call: () => ({}) }, "tiltyard", "dev");
  const live = {
    find: async () => undefined,
    list: async (apiVersion: string, kind: string, selector: string) => {
      if (kind !== "Namespace") return listOf(jobs.map((namespace) => ["RayJob", namespace]))(apiVersion, kind);
      expect(selector).toBe("tiltyard.dev/stack=organization.tiltyard.dev");
      return [namespaceOf(before, urn)];
    },
    disown: async () => {},
  };
  const wanted = { ...before, namespaces: ["features", "features-vision"] };
  await refuseMoveFromJobs(wanted)(live, namespaceOf(wanted));
}

test.each(["lancedb", "lancedb-vision"])("a stack is not renamed while %s has a Ray job", async (namespace) => {
  await expect(rename([namespace])).rejects.toThrow(
    `the namespace ${namespace} leaves the stack, but ${namespace} has the RayJob features`,
  );
});

test("a stack is renamed next to Ray jobs of others and of another platform of its program", async () => {
  await expect(rename(["others", "features"])).resolves.toBeUndefined();
  await expect(rename(["lancedb"], "urn:another")).resolves.toBeUndefined();
});

test("each platform records its foundations on its own namespace, whose changes are checked", async () => {
  const teams = [{ name: "vision", clientPrincipals: ["group:vision"], namespace: "vision" }];
  const { one } = await deployed("existing", { teams, operator: { source: "none", namespace: "kuberay" } });
  const own = one("kubernetes:core/v1:Namespace", "ray");
  expect(own.inputs.metadata.annotations).toMatchObject(
    foundationsAnnotations({
      namespaces: ["lancedb", "vision"],
      serviceAccount: "geneva-service-account",
      operator: "none",
    }),
  );
  expect(own.hooks).toContain("existing-kubernetes-ray-moved");
  expect(own.hooksOfUpdate).toContain("existing-kubernetes-ray-changed");
  const gke = (await deployed("gke")).one("gcp:container/cluster:Cluster");
  expect(gke.hooksOfUpdate).toEqual(["gke-addon"]);
});

test("a namespace with a Pod Security level of a person is refused before the first object", async () => {
  const label = "pod-security.kubernetes.io/enforce";
  const wanted = {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "lancedb", labels: { [label]: "baseline" } },
  };
  const check = (labels: Readonly<Record<string, string>>) =>
    refuseOtherLevels(
      {
        find: async () => ({ ...wanted, metadata: { name: "lancedb", labels } }),
        list: async () => [],
        disown: async () => {},
      },
      wanted,
    );
  await expect(check({ [label]: "privileged" })).rejects.toThrow(
    `the namespace lancedb has the label ${label}=privileged, and the stack sets baseline. Choose another namespace, or ` +
      `remove the label: kubectl label namespace lancedb ${label}-`,
  );
  await expect(check({ [label]: "baseline" })).resolves.toBeUndefined();
  // The stack replaces the labels of its own retained namespace.
  await expect(check({ [label]: "privileged", "tiltyard.dev/stack": "this" })).resolves.toBeUndefined();
});

test.each([
  ["lancedb-catalog", "data-catalog-0", "Export its catalog with the checkout that created it"],
  ["former", "tiltyard-catalog", "Set catalog.namespace: former"],
])("a catalog whose volume is %s/%s gets no second, empty one", async (namespace, name, advice) => {
  await setMocks({ newResource: ({ name: its }) => ({ id: its, state: {} }), call: () => ({}) }, "tiltyard", "dev");
  const claim = { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace } };
  const live = { find: async () => undefined, list: async () => [claim], disown: async () => {} };
  const check = (keepVolume: boolean) =>
    refuseSecondVolume({ namespace: "lancedb-catalog", settings: { keepVolume } })(live, claim);
  await expect(check(true)).rejects.toThrow(
    `the volume ${namespace}/${name} holds the catalog of this stack, and the catalog in lancedb-catalog would start ` +
      `empty. ${advice}; catalog.keepVolume: false lets the catalog start without it`,
  );
  await expect(check(false)).resolves.toBeUndefined();
});

test.each([
  { formerly: "first", ids: ["second"], lost: "first" },
  { formerly: "first,second", ids: ["second"], lost: "first" },
  { formerly: "second,first", ids: ["first"], lost: "second" },
  { formerly: "first", ids: ["first", "second"], lost: undefined },
  { formerly: "first,second", ids: ["second", "first"], lost: undefined },
  { formerly: "second,first", ids: ["second"], lost: undefined },
  { formerly: undefined, ids: ["second"], lost: undefined },
])(
  "keys of secrets with the ids $formerly may become $ids unless the key that encrypts is lost",
  async ({ formerly, ids, lost }) => {
    await setMocks({ newResource: ({ name }) => ({ id: name, state: {} }), call: () => ({}) }, "tiltyard", "dev");
    const kept = formerly === undefined ? {} : { annotations: { "tiltyard.dev/secrets-key-ids": formerly } };
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "keys", ...kept } };
    const live = { find: async () => undefined, list: async () => [secret], disown: async () => {} };
    const check = refuseLostKey(ids)(live, secret);
    if (lost === undefined) await expect(check).resolves.toBeUndefined();
    else await expect(check).rejects.toThrow(`catalog.secretsKeyIds: must contain ${lost}, with which the secrets of`);
  },
);

test("the secret of the keys of secrets names their ids, which the next up compares", async () => {
  const { one } = await deployed("existing", {
    catalog: { image: "registry.example.com/catalog:1", secretsKeyIds: ["b", "a"] },
  });
  const { inputs, hooks, hooksOfUpdate } = one("kubernetes:core/v1:Secret", "catalog-secrets-keys");
  expect(inputs.metadata.annotations).toMatchObject({ "tiltyard.dev/secrets-key-ids": "b,a" });
  // A preview may plan an update, because it does not know the new key yet.
  for (const run of [hooks, hooksOfUpdate]) expect(run).toContainEqual(expect.stringMatching(/catalog-secrets-keys$/));
});
