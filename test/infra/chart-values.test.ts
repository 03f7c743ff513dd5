import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { merged } from "../../infra/settings/chart-values.ts";
import { deployed, type Settings } from "../support/stack.ts";

const release = "kubernetes:helm.sh/v3:Release";

describe("values of charts", () => {
  test("are merged with those of the stack, map by map", async () => {
    const { one } = await deployed("eks", {
      chartValues: {
        kuberayOperator: { resources: { limits: { memory: "1Gi" } }, labels: { team: "platform" } },
        clusterAutoscaler: { extraArgs: { "scale-down-unneeded-time": "20m" } },
        nvidiaDevicePlugin: { gfd: { enabled: true } },
      },
    });
    const operator = one(release, "operator").inputs.values;
    expect(operator.resources).toEqual({ requests: { cpu: "100m", memory: "256Mi" }, limits: { memory: "1Gi" } });
    expect(operator).toMatchObject({ labels: { team: "platform" }, watchNamespace: ["lancedb"] });
    const { extraArgs } = one(release, "autoscaler").inputs.values;
    expect(extraArgs).toMatchObject({ "scale-down-unneeded-time": "20m", "balance-similar-node-groups": true });
    expect(one(release, "nvidia").inputs.values).toMatchObject({ gfd: { enabled: true }, affinity: expect.anything() });
  });

  test("are merged for Kueue as well", async () => {
    const quota = { cpu: "8", memory: "8Gi" };
    const kueue = { controllerManager: { replicas: 2 } };
    const { one } = await deployed("existing", { quota, kueue: { source: "helm" }, chartValues: { kueue } });
    expect(one(release, "kueue").inputs.values.controllerManager).toMatchObject({ replicas: 2, tolerations: [] });
  });

  test("replace lists and scalars", () => {
    expect(merged({ a: [1, 2], b: { c: 1, d: 2 }, e: 1 }, { a: [3], b: { c: 3 }, e: { f: 1 } })).toEqual({
      ...{ a: [3], b: { c: 3, d: 2 }, e: { f: 1 } },
    });
  });

  test.each<[string, Settings, string]>([
    [
      "existing",
      { kuberayOperator: { watchNamespace: ["x"] } },
      "kuberayOperator.watchNamespace: must not be set: the op",
    ],
    [
      "eks",
      { clusterAutoscaler: { image: { tag: "v1" } } },
      "clusterAutoscaler.image.tag: must not be set: it depends on",
    ],
    ["eks", { clusterAutoscaler: { autoDiscovery: {} } }, "clusterAutoscaler.autoDiscovery: must not be set"],
    ["gke", { clusterAutoscaler: {} }, "chartValues: has no field clusterAutoscaler"],
    ["existing", { kueue: {} }, "chartValues.kueue: requires kueue.source helm"],
  ])("are refused with the reason when only the stack may set them: %s %j", async (variant, chartValues, message) => {
    await expect(deployed(variant, { chartValues })).rejects.toThrow(message);
  });

  test("are refused for an operator that exists already", async () => {
    const settings = { operator: { source: "none" }, chartValues: { kuberayOperator: {} } };
    await expect(deployed("existing", settings)).rejects.toThrow("requires operator.source helm");
  });

  test("rejects exactly the documented values", () => {
    const source = readFileSync("infra/settings/chart-values.ts", "utf8");
    const [, table = ""] = /const kept = \{(.*?)\n\} as const/s.exec(source) ?? [];
    const keys = [...table.matchAll(/^ {4}"?([\w.-]+)"?: "/gm)].map(([, key = ""]) => key);
    expect(keys.length).toBeGreaterThan(8);
    const docs = readFileSync("docs/reference/stack.md", "utf8");
    for (const key of keys) expect(docs).toContain(`\`${key}\``);
  });
});
