import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogLabels, catalogName } from "@tiltyard/protocol";
import type { CatalogPlace, Child } from "./catalog.ts";
import { metadataOf } from "./catalog-names.ts";
import type { CatalogPod } from "./catalog-pod.ts";
import { dataVolume } from "./pod-parts.ts";

/** The pods of the catalog: one with a volume, or several. */
export function createCatalogWorkload(name: string, place: CatalogPlace, pod: CatalogPod, child: Child): void {
  if (place.settings.database === "sqlite") createStatefulSet(name, place, pod, child);
  else createDeployment(name, place, pod, child);
  new kubernetes.policy.v1.PodDisruptionBudget(
    name,
    { metadata: metadataOf(place), spec: { maxUnavailable: 1, selector: { matchLabels: catalogLabels } } },
    child,
  );
}

function createStatefulSet(name: string, place: CatalogPlace, pod: CatalogPod, child: Child): void {
  const claimName = createVolume(name, place, child);
  new kubernetes.apps.v1.StatefulSet(
    name,
    {
      metadata: metadataOf(place),
      spec: {
        serviceName: catalogName,
        replicas: 1,
        selector: { matchLabels: catalogLabels },
        template: {
          metadata: { labels: catalogLabels },
          spec: { ...pod, volumes: [...pod.volumes, { name: dataVolume.name, persistentVolumeClaim: { claimName } }] },
        },
      },
    },
    child,
  );
}

/** Not a template of the set, which could not be changed: a volume may grow. It outlives the set: it has the catalog in it. */
function createVolume(name: string, place: CatalogPlace, child: Child): pulumi.Output<string> {
  const { cluster, settings } = place;
  return new kubernetes.core.v1.PersistentVolumeClaim(
    `${name}-data`,
    {
      metadata: {
        ...metadataOf(place),
        // It is bound when its pod has a node; waiting earlier would never end.
        annotations: { "pulumi.com/skipAwait": "true" },
      },
      spec: {
        accessModes: ["ReadWriteOnce"],
        ...(cluster.storageClass !== undefined && { storageClassName: cluster.storageClass }),
        resources: { requests: { storage: settings.volumeSize } },
      },
    },
    // A volume stays of the class that it was made of: it has the catalog in it.
    { ...child, retainOnDelete: !cluster.isOwn, ignoreChanges: ["spec.storageClassName"] },
  ).metadata.name;
}

function createDeployment(name: string, place: CatalogPlace, pod: CatalogPod, child: Child): void {
  new kubernetes.apps.v1.Deployment(
    name,
    {
      metadata: metadataOf(place),
      spec: {
        replicas: place.settings.replicas ?? 2,
        selector: { matchLabels: catalogLabels },
        strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: {
          metadata: { labels: catalogLabels },
          spec: {
            ...pod,
            topologySpreadConstraints: ["topology.kubernetes.io/zone", "kubernetes.io/hostname"].map((topologyKey) => ({
              topologyKey,
              maxSkew: 1,
              whenUnsatisfiable: "ScheduleAnyway",
              labelSelector: { matchLabels: catalogLabels },
            })),
          },
        },
      },
    },
    child,
  );
}
