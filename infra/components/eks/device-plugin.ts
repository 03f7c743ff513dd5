import * as kubernetes from "@pulumi/kubernetes";
import { roleLabels } from "../../node-pools.ts";
import { merged } from "../../settings/chart-values.ts";
import { charts, versions } from "../../versions.ts";
import type { AddonDeps } from "./eks-addons.ts";
import { release } from "./helm-release.ts";
import type { NodeGroup } from "./node-group.ts";

/** Creates the device plugin that lets pods request GPUs, if a pool has any. */
export function createDevicePlugin(name: string, deps: AddonDeps, groups: readonly NodeGroup[]): void {
  const { config } = deps;
  const pools = config.nodePools.filter(({ gpus }) => gpus > 0);
  if (pools.length === 0) return;
  const taints = pools.flatMap((pool) => pool.taints);
  const tolerations = [...new Set(taints.map(({ key }) => key))].map((key) => ({ key, operator: "Exists" }));
  const matchExpressions = Object.entries(roleLabels(config, "workerGpu")).map(([key, value]) => ({
    ...{ key, operator: "In" },
    values: [value],
  }));
  new kubernetes.helm.v3.Release(
    name,
    {
      ...release(charts.nvidiaDevicePlugin, versions.nvidiaDevicePluginChart),
      namespace: "kube-system",
      values: merged(
        {
          tolerations,
          // This replaces the affinity of the chart, which expects the labels of a different operator. Pulumi omits
          // null values.
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] },
            },
          },
        },
        config.chartValues.nvidiaDevicePlugin,
      ),
    },
    { parent: deps.parent, provider: deps.kubernetes, dependsOn: [...groups] },
  );
}
