import * as pulumi from "@pulumi/pulumi";
import { catalogName, type StackOutputs, secretOutputs } from "@tiltyard/protocol";
import type { Cluster } from "./cluster.ts";
import type { CatalogService } from "./components/catalog/catalog-service.ts";
import { nodeSelector, priorityClasses, type StackConfig, tablesVolume } from "./config.ts";
import type { NodeRole } from "./node-pools.ts";

/** The outputs as the program has them: some are known only when the stack is up. */
export type Outputs = { readonly [Name in keyof StackOutputs]: pulumi.Input<StackOutputs[Name]> };

/** What the stack tells other programs. What a variant does not have is left out. */
export function stackOutputs(config: StackConfig, cluster: Cluster, catalog: CatalogService | undefined): Outputs {
  const outputs: Outputs = {
    variant: config.variant,
    ...cluster.access,
    namespace: config.namespace,
    serviceAccount: config.serviceAccount,
    headNodeSelector: nodeSelector(config, "head"),
    workerCpuNodeSelector: nodeSelector(config, "workerCpu"),
    workerGpuNodeSelector: nodeSelector(config, "workerGpu"),
    headPriorityClass: priorityClasses(config).head,
    nodeLimits: nodeLimits(config),
    operatorVersion: config.operator.source === "none" ? undefined : config.operator.version,
    rayVersion: config.ray.version,
    rayImage: config.ray.image,
    bucketUri: cluster.bucketUri,
    tablesVolume: tablesVolume(config),
    ...(catalog && {
      catalogUrl: catalog.url,
      catalogService: catalogName,
      catalogPublicUrl: catalog.publicUrl,
      catalogApiKey: catalog.apiKey,
    }),
  };
  const present = Object.entries(outputs).filter(([, value]) => value !== undefined);
  const secrets: readonly string[] = secretOutputs;
  return Object.fromEntries(
    present.map(([name, value]) => [name, secrets.includes(name) ? pulumi.secret(value) : value]),
  ) as Outputs;
}

function nodeLimits({ nodePools }: StackConfig): StackOutputs["nodeLimits"] {
  if (nodePools.length === 0) return undefined;
  const most = (role: NodeRole) =>
    nodePools.filter((pool) => pool.role === role).reduce((sum, { max }) => sum + max, 0);
  return { head: most("head"), workerCpu: most("workerCpu"), workerGpu: most("workerGpu") };
}
