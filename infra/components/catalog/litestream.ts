import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogLabels } from "@tiltyard/protocol";
import type { Backups } from "../../cluster.ts";
import { versions } from "../../versions.ts";
import type { CatalogPlace, Child } from "./catalog.ts";
import { containerSecurity, dataVolume, secretsOf } from "./pod-parts.ts";

const image = `litestream/litestream:${versions.litestream}`;
const settingsFolder = "/etc/litestream";
const settingsFile = "litestream.yml";

/** What Litestream adds to the catalog's pod. */
export interface Litestream {
  readonly restore: Container;
  /** Begins before the catalog and ends after it: the last changes are copied, too. */
  readonly replicate: Container;
  readonly volume: kubernetes.types.input.core.v1.Volume;
}

type Container = kubernetes.types.input.core.v1.Container;

/**
 * Litestream copies every change to the bucket while the catalog runs. Before it runs, a volume that is lost is filled
 * from the bucket; one that has a database, and a new stack, are left as they are.
 */
export function createLitestream(name: string, place: CatalogPlace, backups: Backups, child: Child): Litestream {
  const configMap = createSettings(name, place, backups, child);
  const container = (role: string, args: string[]) => containerOf(role, args, place);
  const config = ["-config", `${settingsFolder}/${settingsFile}`];
  const onlyIfLost = ["-if-db-not-exists", "-if-replica-exists", dataVolume.databaseFile];
  return {
    restore: container("restore", ["restore", ...config, ...onlyIfLost]),
    replicate: { ...container("litestream", ["replicate", ...config]), restartPolicy: "Always" },
    volume: { name: "litestream", configMap: { name: configMap } },
  };
}

function createSettings(
  name: string,
  { namespace }: CatalogPlace,
  { uri, region }: Backups,
  child: Child,
): pulumi.Output<string> {
  // Without a region, Litestream asks S3 where the bucket is, which is a right of its own.
  const query = region === undefined ? "" : `?region=${region}`;
  const settings = uri.apply((bucket) =>
    JSON.stringify({ dbs: [{ path: dataVolume.databaseFile, replica: { url: `${bucket}/litestream${query}` } }] }),
  );
  return new kubernetes.core.v1.ConfigMap(
    `${name}-litestream`,
    { metadata: { namespace, labels: catalogLabels }, data: { [settingsFile]: settings } },
    child,
  ).metadata.name;
}

function containerOf(name: string, args: string[], { cluster, settings }: CatalogPlace): Container {
  return {
    name,
    image: cluster.services.cachedImage(image),
    args,
    env: Object.entries(cluster.services.podEnvironment).map(([variable, value]) => ({ name: variable, value })),
    envFrom: secretsOf(settings.environmentSecret),
    securityContext: containerSecurity,
    resources: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    volumeMounts: [
      { name: dataVolume.name, mountPath: dataVolume.path },
      { name: "litestream", mountPath: settingsFolder, readOnly: true },
      { name: "tmp", mountPath: "/tmp" },
    ],
  };
}
