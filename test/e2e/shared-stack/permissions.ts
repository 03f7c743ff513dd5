import { CoreV1Api, CustomObjectsApi, PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import { beforeAll, describe, expect, test } from "vitest";
import { managedByRunner, runnerName, runnerRights } from "../../../platform/agreed-values.ts";
import { isAllowed } from "../kubernetes/access-review.ts";
import { KubernetesError } from "../kubernetes/api.ts";
import { tokenOf } from "../kubernetes/token.ts";
import { until } from "../until.ts";
import { alice, catalogNamespace, cluster, namespace, serviceAccount } from "./shared-stack.ts";

const rayPods = `system:serviceaccount:${namespace}:${serviceAccount}`;

const restricted = `${namespace}-restricted`;

const verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const resources = [
  ...["pods", "pods/log", "pods/exec", "pods/portforward", "services", "secrets", "configmaps", "events"],
  ...["serviceaccounts", "serviceaccounts/token", "resourcequotas", "nodes", "namespaces", "persistentvolumeclaims"],
  ...["apps/deployments", "apps/statefulsets", "batch/jobs", "networking.k8s.io/networkpolicies"],
  ...["ray.io/rayclusters", "ray.io/rayclusters/status", "ray.io/rayjobs", "ray.io/rayservices"],
  ...["authorization.k8s.io/localsubjectaccessreviews", "scheduling.k8s.io/priorityclasses"],
  ...["rbac.authorization.k8s.io/clusterroles", "rbac.authorization.k8s.io/rolebindings"],
];

describe("the service account of Ray's pods", () => {
  const allowed = [
    ...["get pods", "list pods", "watch pods"],
    ...["get ray.io/rayclusters", "patch ray.io/rayclusters", "delete ray.io/rayclusters"],
  ];

  test.each([namespace, "another-namespace", undefined])("has exactly the rights of its roles in %s", async (where) => {
    expect(await allowedTo(rayPods, where)).toEqual(allowed.sort());
  });

  test("has its rights by the names of the requirement", async () => {
    const { api } = cluster();
    const binding = await api.get("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", `${serviceAccount}-binding`);
    expect(binding.roleRef).toMatchObject({ kind: "ClusterRole", name: `${serviceAccount}-role` });
    expect(binding.subjects).toEqual([{ kind: "ServiceAccount", name: serviceAccount, namespace }]);
  });
});

describe("the service account of the runner", () => {
  const runner = `system:serviceaccount:${catalogNamespace}:${runnerName}`;

  test("may do in the namespace of Ray what its jobs need, and nothing else", async () => {
    const allowed = runnerRights.flatMap(({ apiGroups: [group], resources: [resource], verbs: [...names] }) =>
      names.map((verb) => `${verb} ${group === "" ? resource : `${group}/${resource}`}`),
    );
    expect(await allowedTo(runner, namespace)).toEqual(allowed.sort());
  });

  test("changes only its own secrets in the namespace of Ray, of which no token of another account is one", async () => {
    const { api } = cluster();
    const token = await tokenOf(api, catalogNamespace, runnerName);
    const core = cluster().kubeConfig({ name: runnerName, token }).makeApiClient(CoreV1Api);
    const named = { namespace, name: "of-runner" };
    const secret = (more: object) => ({
      namespace,
      body: { metadata: { name: named.name, labels: managedByRunner }, stringData: { apiKey: "key" }, ...more },
    });
    const refused = { code: 422, message: expect.stringContaining("The runner may only change secrets") };
    await expect(core.createNamespacedSecret(secret({ metadata: { name: named.name } }))).rejects.toMatchObject(
      refused,
    );
    const annotations = { "kubernetes.io/service-account.name": serviceAccount };
    const ofAccount = { type: "kubernetes.io/service-account-token", stringData: {} };
    const metadata = { name: named.name, labels: managedByRunner, annotations };
    await expect(core.createNamespacedSecret(secret({ ...ofAccount, metadata }))).rejects.toMatchObject(refused);
    await core.createNamespacedSecret(secret({}));
    await core.deleteNamespacedSecret(named);

    const theirs = { apiVersion: "v1", kind: "Secret", metadata: { name: "of-a-person", namespace }, type: "Opaque" };
    await api.create(theirs);
    const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
    const body = { metadata: { labels: managedByRunner } };
    const there = { namespace, name: theirs.metadata.name };
    await expect(core.patchNamespacedSecret({ ...there, body }, merge)).rejects.toMatchObject(refused);
    await expect(core.deleteNamespacedSecret(there)).rejects.toMatchObject(refused);
    await api.delete(theirs);
  });

  test("may do nothing elsewhere, where it is neither", async () => {
    for (const where of [catalogNamespace, "another-namespace", undefined])
      expect(await allowedTo(runner, where)).toEqual([]);
  });
});

describe("a client that the stack lets in", () => {
  const allowed = [
    "create authorization.k8s.io/localsubjectaccessreviews",
    ...["get", "list", "watch", "create", "update", "patch", "delete"].map((verb) => `${verb} ray.io/rayclusters`),
    ...["pods", "pods/log", "services", "events"].flatMap((each) =>
      ["get", "list", "watch"].map((verb) => `${verb} ${each}`),
    ),
    ...["get pods/portforward", "create pods/portforward"],
    ...["serviceaccounts", "resourcequotas"].flatMap((each) => ["get", "list"].map((verb) => `${verb} ${each}`)),
    // KubeRay stores the token of a Ray cluster in a secret.
    "get secrets",
  ];

  test("has exactly the rights to create and watch Ray clusters in the namespace", async () => {
    expect(await allowedTo(alice, namespace)).toEqual(allowed.sort());
  });

  test("may forward a port to the catalog, and nothing else where it is", async () => {
    expect(await allowedTo(alice, catalogNamespace)).toEqual([
      ...["create pods/portforward", "get pods", "get pods/portforward", "get services", "list pods", "list services"],
    ]);
  });

  test("forwards no port to another pod where the catalog is, such as the runner's", async () => {
    const { api } = cluster();
    const names = (await api.list("v1", "Pod", catalogNamespace)).map(({ metadata }) => metadata.name);
    const forwarded = (prefix: string) => {
      const name = names.find((each) => each.startsWith(prefix));
      return api.request("POST", `/api/v1/namespaces/${catalogNamespace}/pods/${name}/portforward?ports=2333`);
    };
    await expect(forwarded("tiltyard-runner-")).rejects.toThrow("Ports are only forwarded to pods of the catalog");
    // The API server admits the request, which then fails because it is no upgrade of its connection, or has no kubelet.
    await expect(forwarded("tiltyard-catalog-")).rejects.toThrow(/Upgrade request required|no preferred addresses/);
  });

  test("may do nothing elsewhere", async () => {
    expect(await allowedTo(alice, "another-namespace")).toEqual([]);
    expect(await allowedTo(alice, undefined)).toEqual([]);
  });
});

describe("a Ray job", () => {
  let core: CoreV1Api;
  let custom: CustomObjectsApi;
  beforeAll(async () => {
    const token = await tokenOf(cluster().api, namespace, serviceAccount);
    const config = cluster().kubeConfig({ name: "ray-job", token });
    core = config.makeApiClient(CoreV1Api);
    custom = config.makeApiClient(CustomObjectsApi);
  });

  test("sees the catalog's pod, but not its secret, its settings or its volume", async () => {
    const { items } = await core.listNamespacedPod({ namespace: catalogNamespace });
    const [pod] = items;
    const secret = pod?.spec?.containers[0]?.envFrom?.[0]?.secretRef?.name ?? "";
    expect(secret).toMatch(/^catalog/);
    const where = { namespace: catalogNamespace };
    await expect(core.readNamespacedSecret({ ...where, name: secret })).rejects.toThrow(/403/);
    await expect(core.listNamespacedSecret(where)).rejects.toThrow(/403/);
    await expect(core.listNamespacedConfigMap(where)).rejects.toThrow(/403/);
    await expect(core.listNamespacedPersistentVolumeClaim(where)).rejects.toThrow(/403/);
  });

  test("cannot run as the catalog's account: no pod, no token, no Ray cluster where the catalog is", async () => {
    const where = { namespace: catalogNamespace };
    const spec = { serviceAccountName: "tiltyard-catalog", containers: [{ name: "job", image: "job" }] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "job" }, spec };
    await expect(core.createNamespacedPod({ ...where, body: pod })).rejects.toThrow(/403/);
    const account = { ...where, name: "tiltyard-catalog" };
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { audiences: [] } };
    await expect(core.createNamespacedServiceAccountToken({ ...account, body })).rejects.toThrow(/403/);
    const rayCluster = { apiVersion: "ray.io/v1", kind: "RayCluster", metadata: { name: "job" }, spec: {} };
    const clusters = { group: "ray.io", version: "v1", plural: "rayclusters", ...where };
    await expect(custom.createNamespacedCustomObject({ ...clusters, body: rayCluster })).rejects.toThrow(/403/);
  });

  test("changes and deletes no Ray cluster of another namespace, which would execute its code", async () => {
    const { api } = cluster();
    const where = { namespace: `${namespace}-vision`, name: "of-others" };
    const containers = [{ name: "ray-head", image: "ray" }];
    const spec = { headGroupSpec: { rayStartParams: {}, template: { spec: { containers } } } };
    const theirs = { apiVersion: "ray.io/v1", kind: "RayCluster", metadata: where, spec };
    await api.create(theirs);
    const named = { group: "ray.io", version: "v1", plural: "rayclusters", ...where };
    const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
    const refused = { code: 422, message: expect.stringContaining(`in ${namespace} may only change and delete`) };
    const body = { spec: { suspend: true } };
    await expect(custom.patchNamespacedCustomObject({ ...named, body }, merge)).rejects.toMatchObject(refused);
    await expect(custom.deleteNamespacedCustomObject(named)).rejects.toMatchObject(refused);
    await api.delete(theirs);
  });

  test("has an account in another namespace than Ray clusters, without a secret to mount", async () => {
    const { api } = cluster();
    const names = async (kind: string, where: string) =>
      (await api.list("v1", kind, where)).map((each) => each.metadata.name);
    expect(await names("ServiceAccount", namespace)).not.toContain("tiltyard-catalog");
    expect(await names("ServiceAccount", catalogNamespace)).toContain("tiltyard-catalog");
    const secrets = await names("Secret", catalogNamespace);
    expect(secrets.length).toBeGreaterThan(0);
    for (const secret of secrets) expect(await names("Secret", namespace)).not.toContain(secret);
    expect(await names("PersistentVolumeClaim", namespace)).toEqual([]);
  });
});

describe("clients that may create Ray clusters", () => {
  const containers = [{ name: "ray-head", image: "ray" }];
  const rayCluster = (pod: object, more: object = {}) => ({
    apiVersion: "ray.io/v1",
    kind: "RayCluster",
    metadata: { name: "probe", namespace },
    spec: { headGroupSpec: { rayStartParams: {}, template: { spec: { containers, ...pod } }, ...more } },
  });
  const created = (...its: Parameters<typeof rayCluster>) =>
    cluster().api.apply(rayCluster(...its), { manager: "tiltyard-e2e", dryRun: true });

  test("run no pod as the operator, whose account reads the secrets of all teams", async () => {
    const refusal = `run as the service account ${serviceAccount}`;
    await expect(created({ serviceAccountName: "kuberay-operator" })).rejects.toThrow(refusal);
    await expect(created({ serviceAccountName: serviceAccount })).resolves.toBeDefined();
    const worker = { groupName: "w", minReplicas: 0, maxReplicas: 1, rayStartParams: {} };
    const template = { spec: { serviceAccountName: "kuberay-operator", containers } };
    const { spec, ...object } = rayCluster({});
    const withWorkers = { ...object, spec: { ...spec, workerGroupSpecs: [{ ...worker, template }] } };
    await expect(cluster().api.apply(withWorkers, { manager: "tiltyard-e2e", dryRun: true })).rejects.toThrow(refusal);
  });

  test("take over no address, such as the catalog's, by the service of a head", async () => {
    const { spec } = await cluster().api.get("v1", "Service", "tiltyard-catalog", catalogNamespace);
    const headService = (more: object) => ({ headService: { metadata: {}, spec: { type: "ClusterIP", ...more } } });
    await expect(created({}, headService({ externalIPs: [spec.clusterIP] }))).rejects.toThrow(/have no externalIPs/);
    await expect(created({}, headService({}))).resolves.toBeDefined();
  });

  test("configure no ingress controller by the annotations of a head's ingress", async () => {
    await expect(created({}, { enableIngress: true })).rejects.toThrow(/Heads of Ray have no ingress/);
    await expect(created({}, { enableIngress: false })).resolves.toBeDefined();
  });

  test("evict no pod of the system or of the stack by a priority class", async () => {
    for (const priorityClassName of ["system-node-critical", `tiltyard-control-${namespace}`])
      await expect(created({ priorityClassName })).rejects.toThrow(/have no priority class of the system/);
    await expect(created({ priorityClassName: `tiltyard-ray-head-${namespace}` })).resolves.toBeDefined();
  });

  test("change no Ray cluster of a former account that is being deleted, which the operator finalizes", async () => {
    const { api } = cluster();
    const type = { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicyBinding" };
    const binding = await api.get(type.apiVersion, type.kind, `tiltyard-ray-clients-${namespace}`);
    await api.delete(binding);
    const named = { namespace, name: "of-former-account" };
    const metadata = { ...named, finalizers: ["example.com/operator"] };
    const { spec } = rayCluster({ serviceAccountName: "former-account" });
    const former = await until(() =>
      api.create({ apiVersion: "ray.io/v1", kind: "RayCluster", metadata, spec }).catch(() => undefined),
    );
    await api.create({ ...type, metadata: { name: binding.metadata.name }, spec: binding.spec });
    await until(() =>
      created({ serviceAccountName: "kuberay-operator" }).then(
        () => false,
        () => true,
      ),
    );

    const path = `/apis/ray.io/v1/namespaces/${namespace}/rayclusters/${named.name}`;
    await api.request("DELETE", path);
    const custom = cluster().kubeConfigAs(alice).makeApiClient(CustomObjectsApi);
    const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
    const body = { spec: { suspend: true } };
    await expect(
      custom.patchNamespacedCustomObject(
        { group: "ray.io", version: "v1", plural: "rayclusters", ...named, body },
        merge,
      ),
    ).rejects.toMatchObject({ code: 422 });
    // Like the operator, the administrator of the tests may change the status of Ray clusters.
    await api.request("PATCH", path, { metadata: { finalizers: [] } }, "application/merge-patch+json");
    expect(await api.find(former)).toBeUndefined();
  });
});

describe("the catalog", () => {
  test("may do nothing on the API server", async () => {
    expect(await allowedTo(`system:serviceaccount:${catalogNamespace}:tiltyard-catalog`, catalogNamespace)).toEqual([]);
  });

  test("runs where only pods of the level restricted may", async () => {
    const { api } = cluster();
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: restricted, labels } });
    const { spec } = await api.get("apps/v1", "StatefulSet", "tiltyard-catalog", catalogNamespace);
    const pod = { ...spec.template.spec, serviceAccountName: "default" };
    await expect(admitted(pod)).resolves.toBeUndefined();
    // The level is enforced: the same pod without its security context is rejected.
    const { securityContext: _, ...laxContainer } = pod.containers[0];
    await expect(admitted({ ...pod, containers: [laxContainer] })).rejects.toThrow(/violates PodSecurity/);
    await api.delete({ apiVersion: "v1", kind: "Namespace", metadata: { name: restricted } });
  });

  test("is selected by its service, its budget and its network policy, which select nothing else", async () => {
    const { api } = cluster();
    const service = await api.get("v1", "Service", "tiltyard-catalog", catalogNamespace);
    const budget = await api.get("policy/v1", "PodDisruptionBudget", "tiltyard-catalog", catalogNamespace);
    const policy = await api.get("networking.k8s.io/v1", "NetworkPolicy", "tiltyard-catalog", catalogNamespace);
    const selectors = [service.spec.selector, budget.spec.selector.matchLabels, policy.spec.podSelector.matchLabels];
    const catalogPods = (await api.list("v1", "Pod", catalogNamespace)).filter(({ metadata }) =>
      metadata.name.startsWith("tiltyard-catalog"),
    );
    expect(catalogPods).toHaveLength(1);
    for (const selector of selectors) {
      const labels = Object.entries(selector).map(([key, value]) => `${key}=${value}`);
      const selected = await api.list("v1", "Pod", catalogNamespace, labels.join(","));
      expect(selected.map(({ metadata }) => metadata.name)).toEqual(catalogPods.map(({ metadata }) => metadata.name));
    }
    const slices = await api.list(
      "discovery.k8s.io/v1",
      "EndpointSlice",
      catalogNamespace,
      "kubernetes.io/service-name=tiltyard-catalog",
    );
    expect(slices.flatMap(({ ports }) => ports).map(({ port }) => port)).toEqual([2333]);
  });
});

/** Returns all actions in the table that a user may perform; in all namespaces when none is specified. */
async function allowedTo(user: string, where: string | undefined): Promise<string[]> {
  const { api } = cluster();
  const asked = resources.flatMap((each) => verbs.map((verb) => ({ each, verb })));
  const answers = await Promise.all(
    asked.map(async ({ each, verb }) => {
      const resourceAttributes = { verb, ...attributesOf(each), ...(where !== undefined && { namespace: where }) };
      return (await isAllowed(api, user, resourceAttributes)) ? [`${verb} ${each}`] : [];
    }),
  );
  return answers.flat().sort();
}

/** Parses `group/resource/subresource`. Groups contain a dot or are one of the old ones. */
function attributesOf(text: string) {
  const parts = text.split("/");
  const hasGroup = parts[0]?.includes(".") || ["apps", "batch"].includes(parts[0] ?? "");
  const [group = "", resource = "", subresource = ""] = hasGroup ? parts : ["", ...parts];
  return { group, resource, subresource };
}

/** Requires that the API server would admit a pod. @throws KubernetesError */
async function admitted(spec: object): Promise<void> {
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "probe", namespace: restricted }, spec };
  try {
    await cluster().api.apply(pod, { manager: "tiltyard-e2e", dryRun: true });
  } catch (error) {
    if (error instanceof KubernetesError) throw new Error(error.message);
    throw error;
  }
}
