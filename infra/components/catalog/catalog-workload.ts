import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogLabels } from "@tiltyard/platform";
import { createMove } from "./catalog-move.ts";
import { type CatalogPlace, type Child, metadataOf, podsServiceName } from "./catalog-place.ts";
import { type CatalogPodArgs, catalogPodSpec } from "./catalog-pod.ts";
import { afterVolume, beforeSqlite, createVolume } from "./catalog-volume.ts";
import { dataVolume } from "./pod-parts.ts";

/** Creates the pods of the catalog: one with a volume, or several with PostgreSQL. */
export function createCatalogWorkload(name: string, place: CatalogPlace, pod: CatalogPodArgs, child: Child): void {
  const { database, moveFrom } = place.settings;
  if (database === "sqlite") {
    const claimName = createVolume(name, place, child);
    createStatefulSet(name, { place, pod, claimName, replicas: 1 }, beforeSqlite(name, place, child));
  } else {
    const moved = moveFrom === undefined ? [] : [createMoveFromSqlite(name, place, pod, child)];
    createDeployment(name, place, pod, dependingOn(moved, afterVolume(name, place, child)));
  }
  new kubernetes.policy.v1.PodDisruptionBudget(
    name,
    {
      metadata: metadataOf(place),
      // A pod that is not ready serves no client, so it must not block the drain of its node.
      spec: {
        maxUnavailable: 1,
        selector: { matchLabels: catalogLabels },
        unhealthyPodEvictionPolicy: "AlwaysAllow",
      },
    },
    child,
  );
}

/** Stops the catalog on SQLite and then copies its volume, which remains. */
function createMoveFromSqlite(name: string, place: CatalogPlace, pod: CatalogPodArgs, child: Child) {
  const claimName = createVolume(name, place, child);
  const onSqlite: CatalogPlace = { ...place, settings: { ...place.settings, database: "sqlite" } };
  const stopped = createStatefulSet(name, { place: onSqlite, pod, claimName, replicas: 0 }, child);
  return createMove(name, place, { pod, claimName }, dependingOn([stopped], child));
}

function dependingOn(resources: readonly pulumi.Resource[], child: Child): Child {
  return { ...child, dependsOn: [...[child.dependsOn ?? []].flat(), ...resources] as pulumi.Resource[] };
}

interface StatefulSetArgs {
  readonly place: CatalogPlace;
  readonly pod: CatalogPodArgs;
  readonly claimName: pulumi.Output<string>;
  readonly replicas: 0 | 1;
}

function createStatefulSet(
  name: string,
  { place, pod, claimName, replicas }: StatefulSetArgs,
  child: Child,
): kubernetes.apps.v1.StatefulSet {
  const spec = catalogPodSpec(place, pod);
  return new kubernetes.apps.v1.StatefulSet(
    name,
    {
      metadata: metadataOf(place),
      spec: {
        serviceName: podsServiceName,
        replicas,
        // By default, a pod that cannot start is never replaced, not even after the cause is corrected.
        podManagementPolicy: "Parallel",
        selector: { matchLabels: catalogLabels },
        template: {
          metadata: { labels: catalogLabels },
          spec: {
            ...spec,
            volumes: [...spec.volumes, { name: dataVolume.name, persistentVolumeClaim: { claimName } }],
          },
        },
      },
    },
    child,
  );
}

function createDeployment(name: string, place: CatalogPlace, pod: CatalogPodArgs, child: Child): void {
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
            ...catalogPodSpec(place, pod),
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
