import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { CloudServices } from "../../cluster.ts";
import type { ExistingGkeConfig } from "../../config.ts";
import { GkeApis } from "./gke-apis.ts";
import { createGkeKey } from "./gke-encryption.ts";
import { GkeServices } from "./gke-services.ts";

/**
 * Looks up Google's services for a GKE cluster outside the stack: accounts for its pods, a bucket, a registry.
 *
 * @throws RunError when the cluster has no workload identity, without which no pod can become an account, or has the add-on
 *   for Ray while the stack would install another operator.
 */
export async function findExistingGke(
  name: string,
  config: ExistingGkeConfig,
): Promise<(parent: pulumi.Resource) => CloudServices> {
  const { clusterName, region, project, location = region } = config;
  const cluster = await gcp.container.getCluster({ name: clusterName, location, project });
  const pool = cluster.workloadIdentityConfigs?.[0]?.workloadPool;
  if (!pool)
    throw new pulumi.RunError(
      `clusterName: ${clusterName} in ${location} does not exist, or has no workload identity. Turn it on: gcloud container ` +
        `clusters update ${clusterName} --location ${location} --workload-pool ${project}.svc.id.goog`,
    );
  if (config.operator.source === "helm" && cluster.addonsConfigs?.[0]?.rayOperatorConfigs?.[0]?.enabled)
    throw new pulumi.RunError(
      `operator: ${clusterName} has the Ray operator add-on of GKE, which watches all namespaces. Set operator: {source: none}`,
    );
  const nodeEmails = await accountsOf(cluster.nodePools ?? [], project);
  return (parent) => {
    const { project: ready } = new GkeApis(`${name}-services`, config, { parent });
    return new GkeServices(name, {
      config,
      key: createGkeKey(`${name}-key`, {
        ...{ parent, project: ready, projectId: project, clusterName, users: ["storage"] },
        encryptionKey: config.encryptionKey,
      }),
      project: ready,
      clusterName,
      parent,
      nodeEmails,
      identityPool: pulumi.output(pool),
    });
  };
}

/** Returns the accounts with which nodes pull images; `default` stands for the default account of the project. */
async function accountsOf(pools: readonly gcp.types.output.container.GetClusterNodePool[], projectId: string) {
  const named = pools.flatMap(({ nodeConfigs }) => nodeConfigs.map(({ serviceAccount }) => serviceAccount));
  const accounts = new Set(named.length === 0 ? ["default"] : named);
  if (!accounts.delete("default")) return [...accounts];
  const { number } = await gcp.organizations.getProject({ projectId });
  return [...accounts, `${number}-compute@developer.gserviceaccount.com`];
}
