import * as pulumi from "@pulumi/pulumi";
import { type StackOutputs, secretOutputs } from "@tiltyard/protocol";
import type { Cluster } from "./cluster.ts";
import { catalogName } from "./components/catalog/catalog-names.ts";
import type { CatalogService } from "./components/catalog/catalog-service.ts";
import { nodeSelector, type StackConfig } from "./config.ts";

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
    operatorVersion: config.operator.source === "none" ? undefined : config.operator.version,
    rayVersion: config.ray.version,
    rayImage: config.ray.image,
    bucketUri: cluster.bucketUri,
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
