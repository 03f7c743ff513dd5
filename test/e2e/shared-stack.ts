import { afterAll, beforeAll } from "vitest";
import { isOurs, type TestCluster, useSharedCluster } from "./cluster.ts";
import { addPlatformNodes } from "./platform-nodes.ts";
import { DeployedStack } from "./stack.ts";

/** Where the shared stack is. */
export const namespace = "lancedb";
/** Whom it lets make Ray clusters. */
export const alice = "alice@example.com";

/** Who its pods are to the cloud. */
export const identity = { "iam.gke.io/gcp-service-account": "ray@our-project.iam.gserviceaccount.com" } as const;

let shared: Promise<DeployedStack> | undefined;

/**
 * The variant `existing` on the shared cluster, with nodes as it wants them: deployed once, for
 * all files that look at what a stack makes. What one of them breaks it repairs.
 */
export function useSharedStack(): { readonly cluster: () => TestCluster; readonly stack: () => DeployedStack } {
  const cluster = useSharedCluster();
  let stack: DeployedStack | undefined;
  beforeAll(async () => {
    shared ??= deploy(cluster());
    stack = await shared;
  });
  // Somebody else's cluster is left as it was; one of our own ends anyway.
  afterAll(async () => {
    if (isOurs) return;
    await stack?.destroy();
    shared = undefined;
  });
  return {
    cluster,
    stack: () => {
      if (stack === undefined) throw new Error("the stack was not deployed");
      return stack;
    },
  };
}

async function deploy(cluster: TestCluster): Promise<DeployedStack> {
  if (isOurs) await addPlatformNodes(cluster.api, "existing");
  const stack = await DeployedStack.create(cluster, "existing");
  await stack.up({
    kubeconfig: cluster.kubeconfigPath,
    deleteNamespace: true,
    clientPrincipals: [`user:${alice}`],
    serviceAccountAnnotations: identity,
  });
  return stack;
}
