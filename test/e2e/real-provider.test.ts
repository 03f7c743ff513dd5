/**
 * A stack under Pulumi's real Kubernetes provider, of which only a version before 4.29 is a Go module. The build needs
 * many minutes, so the tests only run with TILTYARD_E2E_REAL_PROVIDER=1.
 */
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runnerName } from "../../platform/agreed-values.ts";
import { catalogImage, folderOf, isOurs, useCluster } from "./cluster.ts";
import type { KubernetesObject } from "./kubernetes/api.ts";
import { addPlatformNodes, platformNodes } from "./platform-nodes.ts";
import { DeployedStack } from "./stack.ts";
import { isRealProviderAsked, prepareKubernetesProvider } from "./tools.ts";
import { until } from "./until.ts";

const namespace = "tiltyard-e2e-real";
const catalogNamespace = `${namespace}-catalog`;
const renamed = `${namespace}-renamed`;
const operatorVersion = "1.7.0";
/** The steps of a stack without changes, which reads the namespace of the system. */
const unchanged = ["read", "same"];
const isAsked = isOurs && isRealProviderAsked;
/** KubeRay's own chart, which no Go module contains, in a folder with charts. */
const ownChart = join(process.env.TILTYARD_E2E_CHARTS ?? "", "kuberay-operator");
if (!isAsked) process.stderr.write("e2e: left out: the real provider, without TILTYARD_E2E_REAL_PROVIDER=1\n");

describe.runIf(isAsked)("a stack under the real Kubernetes provider", () => {
  const cluster = useCluster();
  const { PATH: pathBefore = "" } = process.env;
  let stack: DeployedStack;

  beforeAll(async () => {
    process.env.PATH = [prepareKubernetesProvider(), pathBefore].join(delimiter);
    await addPlatformNodes(cluster().api);
    writeChart();
    stack = await DeployedStack.create(cluster(), "existing", { name: "real" });
  });
  afterAll(() => {
    process.env.PATH = pathBefore;
  });

  test("is created with a Helm release and KubeRay's definitions, and then has no changes", async () => {
    const { api } = cluster();
    const definition = ["apiextensions.k8s.io/v1", "CustomResourceDefinition", "rayjobs.ray.io"] as const;
    // Another manager owns the field then, which the annotation `pulumi.com/patchForce` overrides.
    const outdate = [{ op: "replace", path: "/spec/versions/0/additionalPrinterColumns/0/name", value: "outdated" }];
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${definition[2]}`;
    await api.request("PATCH", path, outdate, "application/json-patch+json");
    expect(Object.keys(await stack.up(settings()))).toEqual(["create"]);
    expect((await api.get(...definition)).spec.versions[0].additionalPrinterColumns[0].name).toBe("job status");
    // The stand-in of the provider records its calls.
    expect(stack.record.filter(({ provider }) => provider === "kubernetes")).toEqual([]);
    const { status } = await api.get("apps/v1", "Deployment", "kuberay-operator", namespace);
    expect(status.readyReplicas).toBe(1);
    expect(await releases()).toEqual(["sh.helm.release.v1.kuberay-operator.v1"]);
    expect(Object.keys(await stack.preview(settings()))).toEqual(unchanged);
    expect(Object.keys(await stack.refresh())).toEqual(["same"]);
  });

  test("waits until its pods are ready", async () => {
    const { api } = cluster();
    const setSchedulable = async (isSchedulable: boolean) => {
      const change = { spec: { unschedulable: !isSchedulable } };
      for (const node of Object.values(platformNodes).flat())
        await api.request("PATCH", `/api/v1/nodes/${node}`, change, "application/merge-patch+json");
    };
    await setSchedulable(false);
    const updating = stack.up(settings({ image: `${catalogImage}:2` }));
    const isPending = async () => (await podsOf("tiltyard-catalog")).some(({ status }) => status.phase === "Pending");
    expect(await Promise.race([updating, until(isPending)])).toBe(true);
    await setSchedulable(true);
    expect(await updating).toMatchObject({ update: expect.any(Number) });
    const { status } = await api.get("apps/v1", "StatefulSet", "tiltyard-catalog", catalogNamespace);
    expect(status).toMatchObject({ readyReplicas: 1, updatedReplicas: 1 });
  });

  test("plans the changes that it applies, with a new config map for each new content", async () => {
    const changed = settings({ image: `${catalogImage}:2` }, { runner: { rayClusters: { default: {}, big: {} } } });
    const [before] = await configMaps();
    const planned = await stack.preview(changed);
    expect(await stack.up(changed)).toEqual(planned);
    const [after, ...others] = await configMaps();
    expect(others).toEqual([]);
    expect(after?.metadata.name).not.toBe(before?.metadata.name);
    expect(JSON.parse(after?.data["runner.yaml"]).rayClusters).toHaveProperty("big");
    expect(Object.keys(await stack.preview(changed))).toEqual(unchanged);
  });

  test("restores what a person changed or deleted", async () => {
    const { api } = cluster();
    const deployment = { apiVersion: "apps/v1", kind: "Deployment", metadata: named(runnerName) };
    await api.apply({ ...deployment, spec: { replicas: 3 } } as KubernetesObject, { manager: "a-person", force: true });
    const policy = {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: named("default-deny"),
    };
    await api.delete(policy);
    expect(await stack.refresh()).toMatchObject({ delete: 1 });
    await stack.up(settings({ image: `${catalogImage}:2` }));
    expect(await api.find(policy)).toBeDefined();
    expect((await api.get("apps/v1", "Deployment", runnerName, catalogNamespace)).spec.replicas).toBe(1);
  });

  test("leaves a field that only another controller sets, and a label of a namespace that a person changed", async () => {
    const { api } = cluster();
    const spec = { template: { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": "2026-11-30" } } } };
    const deployment: KubernetesObject = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: named(runnerName),
      spec,
    };
    await api.apply(deployment, { manager: "a-controller" });
    const labels = { "pod-security.kubernetes.io/warn": "baseline" };
    const setLabels = (given: object) => {
      const metadata = { name: catalogNamespace, labels: { ...given } };
      return api.apply({ apiVersion: "v1", kind: "Namespace", metadata }, { manager: "a-person", force: true });
    };
    await setLabels(labels);
    await stack.refresh();
    const refusal = /conflict with "a-person": .metadata.labels.pod-security.kubernetes.io\/warn/;
    await expect(stack.up(settings({ image: `${catalogImage}:2` }))).rejects.toThrow(refusal);
    const { metadata } = await api.get("v1", "Namespace", catalogNamespace);
    expect(metadata.labels).toMatchObject(labels);
    const restarted = await api.get("apps/v1", "Deployment", runnerName, catalogNamespace);
    expect(restarted.spec.template.metadata.annotations).toMatchObject(spec.template.metadata.annotations);
    await setLabels({});
    await stack.up(settings({ image: `${catalogImage}:2` }));
  });

  test("upgrades a Helm release with its values", async () => {
    const values = { chartValues: { kuberayOperator: { labels: { team: "platform" } } } };
    await stack.up(settings({ image: `${catalogImage}:2` }, values));
    expect(await releases()).toContain("sh.helm.release.v1.kuberay-operator.v2");
    const { metadata } = await cluster().api.get("apps/v1", "Deployment", "kuberay-operator", namespace);
    expect(metadata.labels).toMatchObject({ team: "platform" });
  });

  test("replaces objects whose names change", async () => {
    const { api } = cluster();
    const role = (account: string) =>
      api.find({
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRole",
        metadata: { name: `${account}-role` },
      });
    await stack.up({ ...settings({ image: `${catalogImage}:2` }), serviceAccount: "tiltyard-e2e-renamed" });
    expect(await role("tiltyard-e2e-renamed")).toBeDefined();
    expect(await role(`${namespace}-ray`)).toBeUndefined();
  });

  test("moves its operator and its rights when its namespace is renamed, and leaves its catalog in place", async () => {
    const { api } = cluster();
    const operatorIn = (where: string) =>
      api.find({
        ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "kuberay-operator", namespace: where } },
      });
    const claim = async () =>
      (await api.get("v1", "PersistentVolumeClaim", "tiltyard-catalog", catalogNamespace)).metadata.uid;
    const before = await claim();
    const catalog = { image: `${catalogImage}:2`, namespace: catalogNamespace };
    const moved = { ...settings(catalog), namespace: renamed, serviceAccount: "tiltyard-e2e-renamed" };
    // The operator of the former namespace still exists during the preview.
    expect(await stack.preview(moved)).toMatchObject({ replace: expect.any(Number) });
    await stack.up(moved);
    expect(await operatorIn(namespace)).toBeUndefined();
    expect((await operatorIn(renamed))?.status.readyReplicas).toBe(1);
    expect(await releases()).toEqual([]);
    expect(await claim()).toBe(before);
    expect(Object.keys(await stack.preview(moved))).toEqual(unchanged);
  });

  test("leaves only its namespaces and its volume", async () => {
    const { api } = cluster();
    await stack.destroy();
    expect(await releases(renamed)).toEqual([]);
    const label = "tiltyard.dev/stack=organization.tiltyard.real";
    const kinds = [
      ["v1", "Service"],
      ["v1", "Secret"],
      ["v1", "ConfigMap"],
      ["v1", "ServiceAccount"],
      ["apps/v1", "StatefulSet"],
      ["apps/v1", "Deployment"],
      ["networking.k8s.io/v1", "NetworkPolicy"],
    ] as const;
    for (const [apiVersion, kind] of kinds)
      expect(await api.list(apiVersion, kind, undefined, label), kind).toEqual([]);
    expect(await api.list("v1", "PersistentVolumeClaim", catalogNamespace)).toHaveLength(1);
  });

  function chartFolder(): string {
    return folderOf(cluster(), "kuberay-operator");
  }

  /** Copies KubeRay's own chart, or writes a small one with its name, its label and its resource definitions. */
  function writeChart(): void {
    const folder = chartFolder();
    if (existsSync(ownChart)) cpSync(ownChart, folder, { recursive: true });
    else writeSmallChart(folder);
    // The API server needs many seconds for each whole schema.
    cpSync(join(cluster().tools.kuberay, "crds"), join(folder, "crds"), { recursive: true });
  }

  function writeSmallChart(folder: string): void {
    mkdirSync(join(folder, "templates"), { recursive: true });
    writeFileSync(
      join(folder, "Chart.yaml"),
      `apiVersion: v2\nname: kuberay-operator\nversion: ${operatorVersion}\ndescription: an operator of the tests\n`,
    );
    writeFileSync(
      join(folder, "templates/deployment.yaml"),
      `apiVersion: apps/v1
kind: Deployment
metadata:
  name: kuberay-operator
  labels: {{ merge (dict "app.kubernetes.io/name" "kuberay-operator") (.Values.labels | default dict) | toJson }}
spec:
  selector: { matchLabels: { app.kubernetes.io/name: kuberay-operator } }
  template:
    metadata: { labels: { app.kubernetes.io/name: kuberay-operator } }
    spec:
      nodeSelector: {{ .Values.nodeSelector | toJson }}
      securityContext: {{ .Values.podSecurityContext | toJson }}
      containers:
        - name: operator
          image: registry.example.com/operator:1
          securityContext: {{ .Values.securityContext | toJson }}
`,
    );
  }

  function settings(catalog: object = {}, more: object = {}) {
    return {
      kubeconfig: cluster().kubeconfigPath,
      namespace,
      serviceAccount: `${namespace}-ray`,
      operator: { chart: chartFolder(), version: operatorVersion, crds: true },
      catalog: { image: `${catalogImage}:1`, ...catalog },
      ...more,
    };
  }

  function named(name: string) {
    return { name, namespace: catalogNamespace };
  }

  async function podsOf(name: string) {
    return cluster().api.list("v1", "Pod", catalogNamespace, `app.kubernetes.io/name=${name}`);
  }

  async function configMaps() {
    return cluster().api.list("v1", "ConfigMap", catalogNamespace, `app.kubernetes.io/name=${runnerName}`);
  }

  async function releases(where = namespace) {
    const secrets = await cluster().api.list("v1", "Secret", where, "owner=helm");
    return secrets.map(({ metadata }) => metadata.name).toSorted();
  }
});
