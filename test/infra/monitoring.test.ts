import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { catalogDashboard } from "../../infra/components/monitoring/catalog-dashboard.ts";
import { useCatalog } from "../support/catalog.ts";
import { missingOf } from "../support/promql.ts";
import { deployed } from "../support/stack.ts";

const operator = { collector: "prometheus-operator", labels: { release: "prometheus" } };
const networkPolicy = "kubernetes:networking.k8s.io/v1:NetworkPolicy";

describe("metrics", () => {
  test("are read by no collector unless the settings name one", async () => {
    const { resources } = await deployed("existing");
    expect(resources.filter(({ type }) => type.includes("monitoring"))).toEqual([]);
  });

  test("are scraped from Ray and the catalog by the Prometheus operator", async () => {
    const { one } = await deployed("existing", { monitoring: operator });
    const type = "kubernetes:monitoring.coreos.com/v1:PodMonitor";
    const ray = one(type, "ray-monitor").inputs;
    expect(ray.metadata).toMatchObject({ name: "ray", namespace: "lancedb", labels: { release: "prometheus" } });
    expect(ray.spec.selector).toEqual({ matchExpressions: [{ key: "ray.io/cluster", operator: "Exists" }] });
    const [first] = ray.spec.podMetricsEndpoints;
    expect(first).toMatchObject({
      port: "metrics",
      relabelings: [{ sourceLabels: ["__meta_kubernetes_pod_label_ray_io_cluster"], targetLabel: "ray_io_cluster" }],
    });
    expect(one(type, "catalog-monitor").inputs).toMatchObject({
      metadata: { namespace: "lancedb-catalog" },
      spec: { podMetricsEndpoints: [{ port: "http", path: "/metrics" }, { port: "litestream" }] },
    });
  });

  test("are scraped from Ray and the catalog by Google's managed Prometheus", async () => {
    const { one } = await deployed("gke", { monitoring: { collector: "google" } });
    const type = "kubernetes:monitoring.googleapis.com/v1:PodMonitoring";
    expect(one(type, "ray-monitor").inputs.spec).toMatchObject({
      endpoints: expect.arrayContaining([{ port: "metrics", path: "/metrics", interval: "30s" }]),
      targetLabels: { fromPod: [{ from: "ray.io/cluster", to: "ray_io_cluster" }] },
    });
    expect(one(type, "catalog-monitor").inputs.spec.endpoints).toMatchObject([
      { port: "http", path: "/metrics" },
      { port: "litestream", path: "/metrics" },
    ]);
  });

  test("are read on Google's clouds alone by Google", async () => {
    const eks = deployed("eks", { monitoring: { collector: "google" } });
    await expect(eks).rejects.toThrow("monitoring: must name a collector: none, prometheus-operator");
  });

  test.each([
    ["existing", operator, "monitoring"],
    ["existing", { ...operator, namespace: "prometheus" }, "prometheus"],
    ["gke", { collector: "google" }, "gmp-system"],
  ])("are open on %s to the collector %j, which reaches nothing else of Ray", async (variant, monitoring, where) => {
    const { one } = await deployed(variant, { monitoring });
    const from = [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": where } } }];
    const rules: { from: object[]; ports: { port: number }[] }[] = one(networkPolicy, "ray-pods").inputs.spec.ingress;
    const ofCollector = rules.filter((rule) => rule.from.some((each) => isDeepStrictEqual(each, from[0])));
    expect(ofCollector.map(({ ports }) => ports.map(({ port }) => port))).toEqual([[8080, 44217, 44227]]);
    const [callers, ...others] = one(networkPolicy, "catalog").inputs.spec.ingress;
    expect(callers.from).toEqual(expect.arrayContaining(from));
    expect(others).toEqual([{ from, ports: [{ protocol: "TCP", port: 9090 }] }]);
  });

  test("are served by Litestream only for a collector", async () => {
    const litestream = { bucket: "s3://backups/prod" };
    const settingsWith = async (monitoring: object) => {
      const { one } = await deployed("existing", { catalog: { image: "catalog:1", litestream }, monitoring });
      return JSON.parse(one("kubernetes:core/v1:ConfigMap", "litestream").inputs.data["litestream.yml"]);
    };
    expect(await settingsWith(operator)).toMatchObject({ addr: ":9090" });
    expect(await settingsWith({})).not.toHaveProperty("addr");
  });
});

describe("dashboards", () => {
  const catalog = useCatalog();

  test("are config maps that the side car of Grafana's chart finds", async () => {
    const { one } = await deployed("existing", { monitoring: { dashboards: true } });
    for (const [name, namespace] of [
      ["ray", "lancedb"],
      ["catalog", "lancedb-catalog"],
    ]) {
      const { metadata, data } = one("kubernetes:core/v1:ConfigMap", `${name}-dashboard`).inputs;
      expect(metadata).toMatchObject({ namespace, labels: { grafana_dashboard: "1" } });
      const [json] = Object.values<string>(data);
      expect(JSON.parse(json ?? "").panels.length).toBeGreaterThan(5);
    }
    const other = { label: "dashboards", value: "yes" };
    const { one: labelled } = await deployed("existing", { monitoring: { dashboards: other } });
    const { labels } = labelled("kubernetes:core/v1:ConfigMap", "ray-dashboard").inputs.metadata;
    expect(labels).toMatchObject({ dashboards: "yes" });
    expect(labels).not.toHaveProperty("grafana_dashboard");
  });

  test("ask for metrics that the catalog has", async () => {
    const call = await catalog.call("listNamespaces", { id: [] });
    expect(call.status).toBe(200);
    const text = await (await catalog.fetch("/metrics", { headers: {} })).text();
    // test/e2e/litestream.test.ts reads those of Litestream.
    expect(missingOf(catalogDashboard, text).filter((problem) => !problem.startsWith("litestream_"))).toEqual([]);
  });

  test("reports dashboards with unknown metrics", () => {
    const queries = { a: "sum by (operation) (rate(tiltyard_nothing[5m]))", b: 'ray_tasks{State="x"}', c: "1" };
    const dashboard = { uid: "", title: "", panels: [{ title: "", unit: "", queries }] };
    expect(missingOf(dashboard, 'ray_tasks{Name="f"} 1\n')).toEqual([
      "tiltyard_nothing: there is no such metric",
      "ray_tasks: has no label State",
      "1: has no metric",
    ]);
  });
});
