import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogLabels, catalogName } from "@tiltyard/platform";
import type { CreationCheck } from "../cluster-provider.ts";
import { command, stackId, stackLabel } from "../ownership.ts";
import { type CatalogDeps, type Child, metadataOf } from "./catalog-deps.ts";

const released = "catalog.keepVolume: false lets the catalog start without it";

/**
 * Creates the volume of SQLite, which contains the whole catalog. It is not a template of the stateful set, because
 * templates cannot change and a volume may need to grow.
 */
export function createVolume(name: string, deps: CatalogDeps, child: Child): pulumi.Output<string> {
  const { cluster, settings, deletionProtection } = deps;
  return new kubernetes.core.v1.PersistentVolumeClaim(
    `${name}-data`,
    {
      metadata: {
        ...metadataOf(deps),
        // The claim is bound only when its pod has a node, so waiting for it here would never end.
        annotations: { "pulumi.com/skipAwait": "true" },
      },
      spec: {
        accessModes: ["ReadWriteOnce"],
        ...(cluster.storageClass !== undefined && { storageClassName: cluster.storageClass }),
        resources: { requests: { storage: settings.volumeSize } },
      },
    },
    {
      ...child,
      protect: cluster.isOwn && deletionProtection && settings.keepVolume,
      retainOnDelete: !cluster.isOwn && settings.keepVolume,
      hooks: { beforeCreate: [cluster.kubernetes.beforeCreate(`${name}-volume`, refuseSecondVolume(deps))] },
      // The volume keeps its original class.
      ignoreChanges: ["spec.storageClassName"],
    },
  ).metadata.name;
}

/** Returns the options of pods with PostgreSQL, which must not start while the records are elsewhere. */
export function afterVolume(name: string, deps: CatalogDeps, child: Child): Child {
  const { cluster, settings } = deps;
  if (settings.moveFrom !== undefined || !settings.keepVolume) return child;
  const check = cluster.kubernetes.beforeCreate(`${name}-no-volume`, refuseEmptyCatalog(deps));
  return { ...child, hooks: { beforeCreate: [check] } };
}

/** Returns the options of the pod with SQLite, which must not start while PostgreSQL has the records. */
export function beforeSqlite(name: string, deps: CatalogDeps, child: Child): Child {
  const check = deps.cluster.kubernetes.beforeCreate(`${name}-no-postgres`, refuseOlderCatalog(deps));
  // The stateful set exists already, without pods, while `moveFrom` is set.
  return { ...child, hooks: { beforeCreate: [check], beforeUpdate: [check] } };
}

function refuseOlderCatalog({ namespace }: CatalogDeps): CreationCheck {
  return async (live) => {
    const found = await live.find("apps/v1", "Deployment", catalogName, namespace);
    if (found === undefined) return;
    throw new Error(
      "the catalog is on PostgreSQL, and SQLite would start without its records, or with old ones. Restore " +
        `catalog.database. To abandon the records: ${command("delete", found)}`,
    );
  };
}

function refuseEmptyCatalog({ namespace }: CatalogDeps): CreationCheck {
  return async (live) => {
    if ((await live.find("v1", "PersistentVolumeClaim", catalogName, namespace)) === undefined) return;
    throw new Error(
      `the volume ${namespace}/${catalogName} holds the catalog, and PostgreSQL would start without its records. ` +
        `catalog.moveFrom: sqlite copies them first; ${released}`,
    );
  };
}

/** Returns a check that rejects a second volume in a different namespace or with a different name. */
export function refuseSecondVolume({
  namespace,
  settings,
}: {
  readonly namespace: string;
  readonly settings: Pick<CatalogDeps["settings"], "keepVolume">;
}): CreationCheck {
  return async (live) => {
    if (!settings.keepVolume) return;
    const labels = { ...catalogLabels, [stackLabel]: stackId() };
    const selector = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
    const claims = await live.list("v1", "PersistentVolumeClaim", selector.join());
    const other = claims.find(({ metadata }) => metadata.namespace !== namespace || metadata.name !== catalogName);
    if (other === undefined) return;
    const { name, namespace: itsNamespace } = other.metadata;
    const advice =
      itsNamespace === namespace
        ? "Export its catalog with the checkout that created it"
        : `Set catalog.namespace: ${itsNamespace}`;
    throw new Error(
      `the volume ${itsNamespace}/${name} holds the catalog of this stack, and the catalog in ${namespace} would start ` +
        `empty. ${advice}; ${released}`,
    );
  };
}
