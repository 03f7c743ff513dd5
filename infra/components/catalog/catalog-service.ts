import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import { catalogLabels, catalogName, catalogPort } from "@tiltyard/protocol";
import type { Cluster } from "../../cluster.ts";
import type { StackConfig } from "../../config.ts";
import { buildCatalogImage } from "./catalog-image.ts";
import { metadataOf } from "./catalog-names.ts";
import { createCatalogNetwork } from "./catalog-network.ts";
import { catalogPodSpec, dataVolume } from "./catalog-pod.ts";

export interface CatalogServiceArgs {
  readonly config: StackConfig;
  readonly cluster: Cluster;
  readonly namespace: kubernetes.core.v1.Namespace;
}

/**
 * The catalog: one pod with SQLite on a volume, or several over PostgreSQL, and what belongs
 * to a service that is left alone: an identity of its own, an API key, a way in and no other,
 * and a say when nodes are drained.
 */
export class CatalogService extends pulumi.ComponentResource {
  /** For pods of the cluster. */
  readonly url: string;
  /** With the role admin; a secret. */
  readonly apiKey: pulumi.Output<string>;
  readonly publicUrl: string | undefined;

  constructor(name: string, args: CatalogServiceArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:CatalogService", name, {}, options);
    const { config, cluster, namespace } = args;
    const { ingress } = config.catalog;
    const child = { parent: this, provider: cluster.kubernetes, dependsOn: [namespace] };
    this.url = `http://${catalogName}.${config.namespace}.svc:${catalogPort}`;
    this.publicUrl = ingress && `https://${ingress.host}`;
    this.apiKey = new random.RandomPassword(`${name}-key`, { length: 48, special: false }, { parent: this }).result;

    const secret = createSecret(name, args, this.apiKey, child);
    const identity = cluster.bucketIdentity("catalog", catalogName);
    const pod = catalogPodSpec(config, cluster, {
      image: imageOf(name, args, this),
      serviceAccount: createServiceAccount(name, config, identity, child).metadata.name,
      vendingRole: config.catalog.vendCredentials ? cluster.vendingRole(identity) : undefined,
      secret: secret.metadata.name,
      litestream: createLitestream(name, args, child),
    });
    if (config.catalog.database === "sqlite") createStatefulSet(name, args, pod, child);
    else createDeployment(name, args, pod, child);
    createCatalogNetwork(name, config, child);
    new kubernetes.policy.v1.PodDisruptionBudget(
      name,
      { metadata: metadataOf(config), spec: { maxUnavailable: 1, selector: { matchLabels: catalogLabels } } },
      child,
    );
    this.registerOutputs();
  }
}

type Child = pulumi.CustomResourceOptions & { readonly parent: pulumi.Resource };
type PodSpec = ReturnType<typeof catalogPodSpec>;

function imageOf(name: string, { config, cluster }: CatalogServiceArgs, parent: pulumi.Resource) {
  const repository = config.catalog.image === undefined ? cluster.imageRepository() : undefined;
  if (repository === undefined) return pulumi.output(config.catalog.image ?? "");
  return buildCatalogImage(`${name}-image`, repository, parent);
}

/** An account of its own: the catalog needs the bucket, and nothing of Kubernetes. */
function createServiceAccount(
  name: string,
  config: StackConfig,
  annotations: pulumi.Output<Record<string, string>>,
  child: Child,
) {
  return new kubernetes.core.v1.ServiceAccount(
    name,
    {
      metadata: { ...metadataOf(config), annotations },
      automountServiceAccountToken: false,
    },
    child,
  );
}

/** The variables that are secrets. Another value makes another secret, and so new pods. */
function createSecret(
  name: string,
  { config, cluster }: CatalogServiceArgs,
  apiKey: pulumi.Output<string>,
  child: Child,
): kubernetes.core.v1.Secret {
  const { catalog, databaseUrl, namespace } = config;
  const url =
    catalog.database === "postgres"
      ? cluster.database({ replicas: replicasOf(config) })
      : databaseUrl !== undefined
        ? pulumi.secret(databaseUrl)
        : undefined;
  return new kubernetes.core.v1.Secret(
    name,
    {
      metadata: { namespace, labels: catalogLabels },
      type: "Opaque",
      stringData: {
        TILTYARD_BOOTSTRAP_API_KEY: apiKey,
        ...(url !== undefined && { TILTYARD_DATABASE_URL: url }),
      },
    },
    child,
  );
}

/** The settings of Litestream: where the copy of the database is. */
function createLitestream(name: string, { config, cluster }: CatalogServiceArgs, child: Child) {
  if (!config.catalog.litestream) return undefined;
  const settings = cluster.bucketUri.apply((uri) =>
    JSON.stringify({
      dbs: [{ path: dataVolume.databaseFile, replica: { url: `${uri}/_tiltyard/litestream` } }],
    }),
  );
  const map = new kubernetes.core.v1.ConfigMap(
    `${name}-litestream`,
    { metadata: { namespace: config.namespace, labels: catalogLabels }, data: { "litestream.yml": settings } },
    child,
  );
  return map.metadata.name;
}

function replicasOf({ catalog }: StackConfig): number {
  return catalog.database === "sqlite" ? 1 : (catalog.replicas ?? 2);
}

function createStatefulSet(name: string, { config, cluster }: CatalogServiceArgs, pod: PodSpec, child: Child): void {
  new kubernetes.apps.v1.StatefulSet(
    name,
    {
      metadata: metadataOf(config),
      spec: {
        serviceName: catalogName,
        replicas: 1,
        selector: { matchLabels: catalogLabels },
        template: { metadata: { labels: catalogLabels }, spec: pod },
        // The volume outlives the set: it has the catalog in it.
        persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Retain" },
        volumeClaimTemplates: [
          {
            metadata: { name: dataVolume.name },
            spec: {
              accessModes: ["ReadWriteOnce"],
              ...(cluster.storageClass !== undefined && { storageClassName: cluster.storageClass }),
              resources: { requests: { storage: config.catalog.volumeSize } },
            },
          },
        ],
      },
    },
    child,
  );
}

function createDeployment(name: string, { config }: CatalogServiceArgs, pod: PodSpec, child: Child): void {
  new kubernetes.apps.v1.Deployment(
    name,
    {
      metadata: metadataOf(config),
      spec: {
        replicas: replicasOf(config),
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
