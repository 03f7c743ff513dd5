import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogLabels } from "@tiltyard/platform";
import { type CatalogDeps, type Child, metadataOf, podsServiceName } from "./catalog-deps.ts";
import { createMove } from "./catalog-move.ts";
import { type CatalogPodArgs, catalogPodMetadata, catalogPodSpec } from "./catalog-pod.ts";
import { afterVolume, beforeSqlite, createVolume } from "./catalog-volume.ts";
import { dataVolume } from "./pod-parts.ts";

/** Creates the pods of the catalog: one with a volume, or several with PostgreSQL. */
export function createCatalogWorkload(name: string, deps: CatalogDeps, pod: CatalogPodArgs, child: Child): void {
  const { database, moveFrom } = deps.settings;
  if (database === "sqlite") {
    const claimName = createVolume(name, deps, child);
    createStatefulSet(name, { deps, pod, claimName, replicas: 1 }, beforeSqlite(name, deps, child));
  } else {
    const moved = moveFrom === undefined ? [] : [createMoveFromSqlite(name, deps, pod, child)];
    createDeployment(name, deps, pod, dependingOn(moved, afterVolume(name, deps, child)));
  }
  new kubernetes.policy.v1.PodDisruptionBudget(
    name,
    {
      metadata: metadataOf(deps),
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
function createMoveFromSqlite(name: string, deps: CatalogDeps, pod: CatalogPodArgs, child: Child) {
  const claimName = createVolume(name, deps, child);
  const onSqlite: CatalogDeps = { ...deps, settings: { ...deps.settings, database: "sqlite" } };
  const stopped = createStatefulSet(name, { deps: onSqlite, pod, claimName, replicas: 0 }, child);
  return createMove(name, deps, { pod, claimName }, dependingOn([stopped], child));
}

function dependingOn(resources: readonly pulumi.Resource[], child: Child): Child {
  return { ...child, dependsOn: [...[child.dependsOn ?? []].flat(), ...resources] as pulumi.Resource[] };
}

interface StatefulSetArgs {
  readonly deps: CatalogDeps;
  readonly pod: CatalogPodArgs;
  readonly claimName: pulumi.Output<string>;
  readonly replicas: 0 | 1;
}

function createStatefulSet(
  name: string,
  { deps, pod, claimName, replicas }: StatefulSetArgs,
  child: Child,
): kubernetes.apps.v1.StatefulSet {
  const spec = catalogPodSpec(deps, pod);
  return new kubernetes.apps.v1.StatefulSet(
    name,
    {
      metadata: metadataOf(deps),
      spec: {
        serviceName: podsServiceName,
        replicas,
        // By default, a pod that cannot start is never replaced, not even after the cause is corrected.
        podManagementPolicy: "Parallel",
        selector: { matchLabels: catalogLabels },
        template: {
          metadata: catalogPodMetadata(pod),
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

function createDeployment(name: string, deps: CatalogDeps, pod: CatalogPodArgs, child: Child): void {
  new kubernetes.apps.v1.Deployment(
    name,
    {
      metadata: metadataOf(deps),
      spec: {
        replicas: deps.settings.replicas ?? 2,
        selector: { matchLabels: catalogLabels },
        strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: {
          metadata: catalogPodMetadata(pod),
          spec: {
            ...catalogPodSpec(deps, pod),
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
