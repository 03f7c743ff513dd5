import type * as pulumi from "@pulumi/pulumi";
import type { Cluster } from "./cluster.ts";
import { CatalogService } from "./components/catalog/catalog-service.ts";
import { EksCluster } from "./components/eks/eks-cluster.ts";
import { ExistingCluster } from "./components/existing-cluster.ts";
import { GkeCluster } from "./components/gke/gke-cluster.ts";
import { RayPlatform } from "./components/ray/ray-platform.ts";
import type { StackConfig } from "./config.ts";
import { type Outputs, stackOutputs } from "./outputs.ts";

const clusters = {
  existing: ExistingCluster,
  gke: GkeCluster,
  eks: EksCluster,
} satisfies Record<StackConfig["variant"], new (name: string, config: StackConfig) => Cluster & pulumi.Resource>;

/** Everything that a stack consists of. */
export function deploy(config: StackConfig): Outputs {
  const cluster: Cluster = new clusters[config.variant](config.variant, config);
  const platform = new RayPlatform("ray", { config, cluster });
  const catalog = config.catalog.enabled
    ? new CatalogService("catalog", { config, cluster, namespace: platform.namespace })
    : undefined;
  return stackOutputs(config, cluster, catalog);
}
