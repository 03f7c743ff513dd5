import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type KubernetesApi, KubernetesError, type KubernetesObject } from "./api.ts";
import { waitUntilReady } from "./ready.ts";

/** A kind of external software, for which the API server accepts any object. */
interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly scope: "Namespaced" | "Cluster";
}

const kueueKinds: readonly Kind[] = [
  { group: "kueue.x-k8s.io", version: "v1beta2", kind: "ResourceFlavor", scope: "Cluster" },
  { group: "kueue.x-k8s.io", version: "v1beta2", kind: "ClusterQueue", scope: "Cluster" },
  { group: "kueue.x-k8s.io", version: "v1beta2", kind: "LocalQueue", scope: "Namespaced" },
];

const monitoringKinds: readonly Kind[] = [
  { group: "monitoring.coreos.com", version: "v1", kind: "PodMonitor", scope: "Namespaced" },
  { group: "monitoring.googleapis.com", version: "v1", kind: "PodMonitoring", scope: "Namespaced" },
];

export const kueueDefinitions = kueueKinds.map(definitionOf);
export const monitoringDefinitions = monitoringKinds.map(definitionOf);

/** Returns KubeRay's definitions from one of its folders. */
export function rayDefinitions(folder: string): KubernetesObject[] {
  return readdirSync(folder).map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")));
}

/**
 * Creates the missing definitions, like Helm, and waits until the API server serves all of them. Concurrent stacks
 * share them, so another one may create them first.
 */
export async function installDefinitions(api: KubernetesApi, definitions: readonly KubernetesObject[]): Promise<void> {
  await Promise.all(
    definitions.map(async (definition) => {
      await api.create(definition).catch((error) => {
        if (!(error instanceof KubernetesError) || error.reason !== "AlreadyExists") throw error;
      });
      await waitUntilReady(api, definition);
    }),
  );
}

function definitionOf({ group, version, kind, scope }: Kind): KubernetesObject {
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
