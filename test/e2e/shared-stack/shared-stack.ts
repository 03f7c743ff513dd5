import { afterAll, beforeAll } from "vitest";
import { catalogImage, isOurs, useCluster } from "../cluster.ts";
import { addPlatformNodes } from "../platform-nodes.ts";
import { DeployedStack } from "../stack.ts";

/** Where the shared stack is: a name that no other stack has. */
export const namespace = "tiltyard-e2e";
export const catalogNamespace = `${namespace}-catalog`;
export const serviceAccount = "tiltyard-e2e-ray";
/** The principal that may make Ray clusters. */
export const alice = "alice@example.com";

/** The identity of its pods in the cloud. */
export const identity = { "iam.gke.io/gcp-service-account": "ray@our-project.iam.gserviceaccount.com" } as const;

export const cluster = useCluster();
let deployed: DeployedStack | undefined;

beforeAll(async () => {
  if (isOurs) await addPlatformNodes(cluster().api);
  deployed = await DeployedStack.create(cluster(), "existing");
  await deployed.up({
    kubeconfig: cluster().kubeconfigPath,
    namespace,
    serviceAccount,
    deleteNamespace: true,
    catalog: { image: `${catalogImage}:1` },
    clientPrincipals: [`user:${alice}`],
    serviceAccountAnnotations: identity,
  });
});

// A given cluster is left as it was; one of our own ends anyway.
afterAll(async () => {
  if (!isOurs) await deployed?.destroy();
});

/** The variant `existing`, deployed once for all tests that look at what a stack makes. What one of them breaks it repairs. */
export function stack(): DeployedStack {
  if (deployed === undefined) throw new Error("the stack was not deployed");
  return deployed;
}
