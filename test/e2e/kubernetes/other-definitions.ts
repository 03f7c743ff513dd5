import type { KubernetesApi } from "./api.ts";
import { waitUntilReady } from "./ready.ts";

/** A kind that other software brings along, as far as the API server has to know it: any object is one. */
interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly scope: "Namespaced" | "Cluster";
}

export const kueueKinds: readonly Kind[] = [
  { group: "kueue.x-k8s.io", version: "v1beta2", kind: "ResourceFlavor", scope: "Cluster" },
  { group: "kueue.x-k8s.io", version: "v1beta2", kind: "ClusterQueue", scope: "Cluster" },
  { group: "kueue.x-k8s.io", version: "v1beta2", kind: "LocalQueue", scope: "Namespaced" },
];

export const monitoringKinds: readonly Kind[] = [
  { group: "monitoring.coreos.com", version: "v1", kind: "PodMonitor", scope: "Namespaced" },
  { group: "monitoring.googleapis.com", version: "v1", kind: "PodMonitoring", scope: "Namespaced" },
];

/** Makes those definitions that are not there. */
export async function installDefinitions(api: KubernetesApi, kinds: readonly Kind[]): Promise<void> {
  for (const kind of kinds) {
    const definition = definitionOf(kind);
    if ((await api.find(definition)) === undefined) await waitUntilReady(api, await api.create(definition));
  }
}

function definitionOf({ group, version, kind, scope }: Kind) {
  const plural = `${kind.toLowerCase()}s`;
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: { kind, plural, singular: kind.toLowerCase() },
      versions: [{ name: version, served: true, storage: true, schema }],
    },
  };
}
