import { afterAll, beforeAll } from "vitest";
import { catalogImage, isOurs, useCluster } from "../cluster.ts";
import { addPlatformNodes } from "../platform-nodes.ts";
import { DeployedStack } from "../stack.ts";

/** The namespace of the shared stack, which no other stack uses. */
export const namespace = "tiltyard-e2e";
export const catalogNamespace = `${namespace}-catalog`;
export const serviceAccount = "tiltyard-e2e-ray";
/** The principal that may create Ray clusters. */
export const alice = "alice@example.com";

/** The cloud identity of its pods. */
export const identity = { "iam.gke.io/gcp-service-account": "ray@our-project.iam.gserviceaccount.com" } as const;

/** The identity of a team's pods. */
export const teamIdentity = (team: string) => ({
  "iam.gke.io/gcp-service-account": `ray-${team}@our-project.iam.gserviceaccount.com`,
});

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
    teams: ["vision", "speech"].map((name) => ({ name, serviceAccountAnnotations: teamIdentity(name) })),
  });
});

// A given cluster must be restored; one of our own is deleted anyway.
afterAll(async () => {
  if (!isOurs) await deployed?.destroy();
});

/** Returns the variant `existing`, which is deployed once for all tests of a stack. Tests repair whatever they break. */
export function stack(): DeployedStack {
  if (deployed === undefined) throw new Error("the stack was not deployed");
  return deployed;
}
