/**
 * A stack under Pulumi's real Kubernetes provider, of which only a version before 4.29 is a Go module. The build needs
 * many minutes, so the tests only run with TILTYARD_E2E_REAL_PROVIDER=1.
 */
import { mkdirSync, writeFileSync } from "node:fs";
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
const isAsked = isOurs && isRealProviderAsked;
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

  test("is created with a Helm release, and then has no changes", async () => {
    const { api } = cluster();
    expect(Object.keys(await stack.up(settings()))).toEqual(["create"]);
    // The stand-in of the provider records its calls.
    expect(stack.record.filter(({ provider }) => provider === "kubernetes")).toEqual([]);
    const { status } = await api.get("apps/v1", "Deployment", "kuberay-operator", namespace);
    expect(status.readyReplicas).toBe(1);
    expect(await releases()).toEqual(["sh.helm.release.v1.kuberay-operator.v1"]);
    expect(Object.keys(await stack.preview(settings()))).toEqual(["same"]);
    expect(Object.keys(await stack.refresh())).toEqual(["same"]);
  });

  test("waits until its pods are ready", async () => {
    const { api } = cluster();
    const setSchedulable = (isSchedulable: boolean) =>
      api.request(
        "PATCH",
        `/api/v1/nodes/${platformNodes.core}`,
        { spec: { unschedulable: !isSchedulable } },
        "application/merge-patch+json",
      );
    await setSchedulable(false);
    let hasEnded = false;
    const updating = stack.up(settings({ image: `${catalogImage}:2` })).finally(() => {
      hasEnded = true;
    });
    await until(async () => (await podsOf("tiltyard-catalog")).some(({ status }) => status.phase === "Pending"));
    expect(hasEnded).toBe(false);
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
    expect(Object.keys(await stack.preview(changed))).toEqual(["same"]);
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

  test("leaves only its namespaces and its volume", async () => {
    const { api } = cluster();
    await stack.destroy();
    expect(await releases()).toEqual([]);
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

  /** Writes a small chart with the name and the label of KubeRay's own, which no registry here has. */
  function writeChart(): void {
    const folder = chartFolder();
    mkdirSync(join(folder, "templates"), { recursive: true });
    writeFileSync(
      join(folder, "Chart.yaml"),
      "apiVersion: v2\nname: kuberay-operator\nversion: 1.7.0\ndescription: an operator of the tests\n",
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
      operator: { chart: chartFolder(), version: "1.7.0" },
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

  async function releases() {
    const secrets = await cluster().api.list("v1", "Secret", namespace, "owner=helm");
    return secrets.map(({ metadata }) => metadata.name).toSorted();
  }
});
