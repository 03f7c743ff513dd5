import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogLabels } from "@tiltyard/platform";
import type { Backups } from "../../cluster.ts";
import { versions } from "../../versions.ts";
import type { CatalogDeps, Child } from "./catalog-deps.ts";
import { containerSecurity, dataVolume, secretsOf } from "./pod-parts.ts";

const image = `litestream/litestream:${versions.litestream}`;
/** The name of its container, of its volume and of the port of its metrics. */
export const litestreamName = "litestream";
const settingsFolder = "/etc/litestream";
const settingsFile = "litestream.yml";
/** The port of its metrics, which only the collector of the stack may read. */
export const litestreamPort = 9090;
/** A restore reaches back as far as the snapshots. By default, Litestream keeps only those of the last day. */
const snapshots = { interval: "24h", retention: "336h" } as const;

/** The parts that Litestream adds to the catalog's pod. */
export interface Litestream {
  readonly restore: Container;
  /** The container that starts before the catalog and stops after it, so that it also copies the last changes. */
  readonly replicate: Container;
  readonly volume: kubernetes.types.input.core.v1.Volume;
}

type Container = kubernetes.types.input.core.v1.Container;

/**
 * Creates the settings of Litestream, which copies every change to the bucket while the catalog runs. Before the
 * catalog starts, a lost volume is restored from the bucket. A volume with a database and a new stack stay unchanged.
 */
export function createLitestream(name: string, deps: CatalogDeps, backups: Backups, child: Child): Litestream {
  const configMap = createSettings(name, deps, backups, child);
  const container = (role: string, args: string[]) => containerOf(role, args, deps);
  const config = ["-config", `${settingsFolder}/${settingsFile}`];
  const onlyIfLost = ["-if-db-not-exists", "-if-replica-exists", dataVolume.databaseFile];
  return {
    restore: container("restore", ["restore", ...config, ...onlyIfLost]),
    replicate: {
      ...container(litestreamName, ["replicate", ...config]),
      restartPolicy: "Always",
      ports: [{ name: litestreamName, containerPort: litestreamPort }],
    },
    volume: { name: litestreamName, configMap: { name: configMap } },
  };
}

function createSettings(
  name: string,
  { namespace, monitoring }: CatalogDeps,
  { uri, region }: Backups,
  child: Child,
): pulumi.Output<string> {
  const settings = uri.apply((bucket) =>
    JSON.stringify({
      ...(monitoring.collector !== "none" && { addr: `:${litestreamPort}` }),
      snapshot: snapshots,
      dbs: [
        {
          path: dataVolume.databaseFile,
          replica: { url: `${bucket}/litestream`, ...(bucket.startsWith("s3:") && onS3(region)) },
        },
      ],
    }),
  );
  return new kubernetes.core.v1.ConfigMap(
    `${name}-litestream`,
    { metadata: { namespace, labels: catalogLabels }, data: { [settingsFile]: settings } },
    child,
  ).metadata.name;
}

/**
 * Returns the settings of S3. Litestream replaces variables, which are those of `catalog.environmentSecret` and empty
 * without it. Without a region, Litestream queries the bucket's location, which needs an additional right. Without the
 * endpoint, it expects a store outside AWS to have a host name for each bucket.
 */
function onS3(region: string | undefined) {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: Litestream's notation.
  return { region: region ?? "${AWS_REGION}", endpoint: "${AWS_ENDPOINT_URL}" };
}

function containerOf(name: string, args: string[], { cluster, settings }: CatalogDeps): Container {
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
      { name: litestreamName, mountPath: settingsFolder, readOnly: true },
      { name: "tmp", mountPath: "/tmp" },
    ],
  };
}
