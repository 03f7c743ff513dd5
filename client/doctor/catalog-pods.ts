import { CoreV1Api, type KubeConfig, type V1Pod } from "@kubernetes/client-node";
import { catalogLabels, catalogPort } from "@tiltyard/platform";
import { type Forwarding, forwardPort } from "../kubernetes/port-forward.ts";

/** Returns the pods of a catalog that a stack deployed. */
export async function catalogPods(core: CoreV1Api, namespace: string): Promise<readonly V1Pod[]> {
  const labelSelector = Object.entries(catalogLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
  return (await core.listNamespacedPod({ namespace, labelSelector })).items;
}

/** Forwards a port of this machine to a catalog that a stack deployed, through the API server. */
export function forwardToCatalog(config: KubeConfig, namespace: string): Promise<Forwarding> {
  const core = config.makeApiClient(CoreV1Api);
  const findPod = async () => {
    const running = (await catalogPods(core, namespace)).find(({ status }) => status?.phase === "Running");
    return running?.metadata?.name;
  };
  return forwardPort(config, namespace, findPod, catalogPort);
}
