import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogName } from "@tiltyard/platform";
import type { CatalogDeps, Child } from "./catalog-deps.ts";
import { baseContainer, basePodSpec, type CatalogPodArgs } from "./catalog-pod.ts";
import { dataVolume } from "./pod-parts.ts";

const moveName = `${catalogName}-move`;
export const moveLabels = { "app.kubernetes.io/name": moveName };

/** The maximum number of attempts, because the old pod may still use the file and the volume for a short time. */
const attemptsMax = 10;

/**
 * Copies the catalog from its volume into PostgreSQL and compares every row. The job runs only once, because a second
 * run would find a database that is not empty.
 */
export function createMove(
  name: string,
  deps: CatalogDeps,
  { pod, claimName }: { readonly pod: CatalogPodArgs; readonly claimName: pulumi.Input<string> },
  child: Child,
): kubernetes.batch.v1.Job {
  return new kubernetes.batch.v1.Job(
    `${name}-move`,
    {
      metadata: { name: moveName, namespace: deps.namespace, labels: moveLabels },
      spec: {
        backoffLimit: attemptsMax,
        template: {
          metadata: { labels: moveLabels },
          spec: {
            ...basePodSpec(deps, pod),
            restartPolicy: "Never",
            containers: [
              {
                name: "move",
                ...baseContainer(deps, pod),
                args: ["move", dataVolume.databaseFile],
                volumeMounts: [
                  { name: dataVolume.name, mountPath: dataVolume.path },
                  { name: "tmp", mountPath: "/tmp" },
                ],
              },
            ],
            volumes: [
              { name: dataVolume.name, persistentVolumeClaim: { claimName } },
              { name: "tmp", emptyDir: { sizeLimit: "256Mi" } },
            ],
          },
        },
      },
    },
    // A later image must not repeat the move.
    { ...child, ignoreChanges: ["spec"], customTimeouts: { create: "60m" } },
  );
}
