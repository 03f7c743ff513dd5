import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import { catalogLabels, catalogName, catalogPort } from "@tiltyard/platform";
import type { Cluster, PodIdentity } from "../../cluster.ts";
import { catalogImage } from "../../image-sources.ts";
import { catalogDefaults, catalogNamespace } from "../../settings/catalog-settings.ts";
import { type MonitoringSettings, noMonitoring } from "../../settings/monitoring-settings.ts";
import { componentName } from "../component-name.ts";
import { buildImage } from "../image-build.ts";
import { createNamespace } from "../namespace.ts";
import type { PlatformParts } from "../ray/ray-platform.ts";
import { createCatalogAccess } from "./catalog-access.ts";
import { type CatalogDeps, type CatalogOptions, type Child, metadataOf } from "./catalog-deps.ts";
import { namespaceLabelsOf } from "./catalog-entry.ts";
import { createCatalogMonitoring } from "./catalog-monitoring.ts";
import { createCatalogNetwork } from "./catalog-network.ts";
import { createSecretsKeys } from "./catalog-secrets-keys.ts";
import { createCatalogWorkload } from "./catalog-workload.ts";
import { createLitestream } from "./litestream.ts";

export interface CatalogArgs extends Partial<CatalogOptions> {
  /** The cluster of the catalog's pods. */
  readonly cluster: Cluster;
  /** The platform whose Ray jobs use the catalog. */
  readonly platform: PlatformParts;
  /** The namespace of the catalog; that of the platform with the suffix `-catalog` when absent. */
  readonly namespace?: string | undefined;
  /** Deletes the namespace, and thus the volume, with the stack on a cluster that the stack did not create. */
  readonly deleteNamespace?: boolean;
  /** Pulumi refuses to delete the volume on a cluster that the stack created. The default is true. */
  readonly deletionProtection?: boolean;
  /** The collector of the catalog's metrics; none when absent. */
  readonly monitoring?: MonitoringSettings;
  /** The names of the Ray clusters in the runner's settings. The catalog then rejects jobs with any other name. */
  readonly rayClusters?: readonly string[] | undefined;
}

/** The parts of a catalog that its runner uses. */
export interface CatalogParts {
  readonly namespace: string;
  /** The URL for pods of the cluster. */
  readonly url: string;
  /** The API key with the role runner, which is a secret. */
  readonly runnerKey: pulumi.Output<string>;
  /** The image of the catalog and of the runner of its jobs. */
  readonly image: pulumi.Output<string>;
  /** The resource that contains the whole catalog. */
  readonly resource: pulumi.Resource;
}

/**
 * The catalog: one pod with SQLite on a volume, or several with PostgreSQL. It has a namespace, an identity and an API
 * key of its own, one ingress path and a PodDisruptionBudget.
 */
export class Catalog extends pulumi.ComponentResource implements CatalogParts {
  readonly namespace: string;
  readonly url: string;
  /** The API key with the role admin, which is a secret. */
  readonly apiKey: pulumi.Output<string>;
  readonly runnerKey: pulumi.Output<string>;
  readonly image: pulumi.Output<string>;
  readonly publicUrl: string | undefined;
  /** The URI of the copies of the database; undefined without Litestream. */
  readonly backupsUri: pulumi.Output<string> | undefined;

  constructor(name: string, args: CatalogArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:Catalog", componentName(name), {}, args.cluster.kubernetes.owned("catalog", options));
    const {
      cluster,
      platform,
      namespace,
      deleteNamespace = false,
      deletionProtection = true,
      rayClusters,
      ...more
    } = args;
    const { monitoring = noMonitoring, ...given } = more;
    const settings: CatalogOptions = { ...catalogDefaults, ...given };
    if (settings.oidc === undefined)
      pulumi.log.warn(
        "The catalog uses development authentication: API keys, and tokens that it issues itself. Set catalog.oidc for production.",
        this,
      );
    this.namespace = catalogNamespace(platform.namespace, { namespace });
    this.url = `http://${catalogName}.${this.namespace}.svc:${catalogPort}`;
    const entry = settings.gateway ?? settings.ingress;
    this.publicUrl = entry && `https://${entry.host}`;
    this.apiKey = createKey(`${name}-key`, this);
    this.runnerKey = createKey(`${name}-runner-key`, this);

    const deps = {
      cluster,
      platform,
      settings,
      rayClusters,
      monitoring,
      deletionProtection,
      namespace: this.namespace,
    };
    const enforce = "restricted";
    const ownNamespace = createNamespace(
      name,
      { ...deps, enforce, denied: ["Ingress", "Egress"], deleteNamespace, labels: namespaceLabelsOf(settings) },
      this,
    );
    const child = { parent: this, provider: cluster.kubernetes, dependsOn: [ownNamespace, ...platform.priorities] };
    const { database } = settings;
    const databaseUrl = database === "sqlite" ? undefined : pulumi.secret(database.url);
    this.image = imageOf(name, deps, this);
    const identity = cluster.services.createIdentity("catalog", { namespace: this.namespace, name: catalogName });
    const backups = settings.litestream === false ? undefined : cluster.services.createBackups(identity);
    const pod = {
      image: this.image,
      serviceAccount: createServiceAccount(name, deps, identity, child),
      identity: identity.annotations,
      vendingRole: settings.vendCredentials ? cluster.services.createVendingRole(identity) : undefined,
      secret: createSecret(name, deps, this, databaseUrl, child),
      secretsKeys: settings.secretsKeySecret ?? createSecretsKeys(name, deps, this, child),
      litestream: backups && createLitestream(name, deps, backups, child),
    };
    createCatalogWorkload(name, deps, pod, child);
    createCatalogNetwork(name, deps, databaseUrl, child);
    createCatalogMonitoring(name, deps, child);
    createCatalogAccess(`${name}-client`, deps, child);
    this.backupsUri = backups?.uri;
    this.registerOutputs();
  }

  get resource(): pulumi.Resource {
    return this;
  }
}

function createKey(name: string, parent: pulumi.Resource): pulumi.Output<string> {
  return pulumi.secret(new random.RandomPassword(name, { length: 48, special: false }, { parent }).result);
}

function imageOf(name: string, { cluster, settings }: CatalogDeps, parent: pulumi.Resource) {
  if (settings.image !== undefined) return pulumi.output(cluster.services.cachedImage(settings.image));
  const repository = cluster.services.createImageRepository("tiltyard-catalog");
  if (repository === undefined)
    throw new pulumi.RunError("catalog.image: is required on a cluster that has no registry of the stack");
  const source = { ...catalogImage, architectures: [cluster.architecture] };
  return buildImage(`${name}-image`, repository, source, parent);
}

/** Creates a separate account, because the catalog needs the bucket but no rights in Kubernetes. */
function createServiceAccount(
  name: string,
  deps: CatalogDeps,
  { annotations }: PodIdentity,
  child: Child,
): pulumi.Output<string> {
  return new kubernetes.core.v1.ServiceAccount(
    name,
    { metadata: { ...metadataOf(deps), annotations }, automountServiceAccountToken: false },
    child,
  ).metadata.name;
}

/** Creates the secret variables. Different values create a new secret and thus new pods. */
function createSecret(
  name: string,
  { namespace }: CatalogDeps,
  { apiKey, runnerKey }: Pick<Catalog, "apiKey" | "runnerKey">,
  databaseUrl: pulumi.Input<string> | undefined,
  child: Child,
): pulumi.Output<string> {
  return new kubernetes.core.v1.Secret(
    name,
    {
      metadata: { namespace, labels: catalogLabels },
      type: "Opaque",
      stringData: {
        TILTYARD_BOOTSTRAP_API_KEY: apiKey,
        TILTYARD_RUNNER_API_KEY: runnerKey,
        ...(databaseUrl !== undefined && { TILTYARD_DATABASE_URL: databaseUrl }),
      },
    },
    child,
  ).metadata.name;
}
