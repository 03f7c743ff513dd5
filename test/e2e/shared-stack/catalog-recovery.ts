import { expect, test } from "vitest";
import { catalogName } from "../../../platform/agreed-values.ts";
import { describeOnOurs } from "../cluster.ts";
import { until } from "../until.ts";
import { catalogNamespace, cluster } from "./shared-stack.ts";

const path = `/apis/apps/v1/namespaces/${catalogNamespace}/statefulsets/${catalogName}`;

describeOnOurs("a catalog on SQLite that cannot start", "nodes that the tests created", () => {
  test("starts after the correction of its settings, without the deletion of its pod by hand", async () => {
    const { api } = cluster();
    const select = (nodeSelector: object | null) =>
      api.request("PATCH", path, { spec: { template: { spec: { nodeSelector } } } }, "application/merge-patch+json");
    const isScheduled = async (expected: boolean) => {
      const pod = await api.find({
        ...{ apiVersion: "v1", kind: "Pod" },
        metadata: { name: `${catalogName}-0`, namespace: catalogNamespace },
      });
      const conditions: readonly { type: string; status: string }[] = pod?.status.conditions ?? [];
      return conditions.some(({ type, status }) => type === "PodScheduled" && (status === "True") === expected);
    };
    expect(await isScheduled(true)).toBe(true);
    const { spec } = await api.get("apps/v1", "StatefulSet", catalogName, catalogNamespace);
    await select({ "example.com/no-node-has-it": "true" });
    await until(() => isScheduled(false));
    await select({ "example.com/no-node-has-it": null, ...spec.template.spec.nodeSelector });
    await until(() => isScheduled(true));
  });
});
