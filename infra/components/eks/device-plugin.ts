import * as kubernetes from "@pulumi/kubernetes";
import { merged } from "../../chart-values.ts";
import { roleLabels } from "../../node-pools.ts";
import { charts, versions } from "../../versions.ts";
import type { AddonContext } from "./eks-addons.ts";
import { release } from "./helm-release.ts";
import type { NodeGroup } from "./node-group.ts";

/** Makes GPUs something that pods can ask for, where there are some; requirements.md 5.1, variant B, 7. */
export function createDevicePlugin(name: string, context: AddonContext, groups: readonly NodeGroup[]): void {
  const { config } = context;
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
          // In the place of the chart's, which wants labels of another operator. Pulumi leaves out what is null.
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] },
            },
          },
        },
        config.chartValues.nvidiaDevicePlugin,
      ),
    },
    { parent: context.parent, provider: context.kubernetes, dependsOn: [...groups] },
  );
}
