import type * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogContainer, catalogPort } from "@tiltyard/protocol";
import type { Cluster } from "../../cluster.ts";
import { priorityClasses, type StackConfig, tablesVolume } from "../../config.ts";
import { versions } from "../../versions.ts";

/** Where the catalog keeps its database, in the pod. */
export const dataVolume = { name: "data", path: "/data", databaseFile: "/data/catalog.sqlite" } as const;

/** The user `node` of the image. */
const userId = 1000;
/** The catalog gives requests that it has accepted 25 seconds when it is told to stop. */
const stopSeconds = 40;

export interface CatalogPodArgs {
  readonly image: pulumi.Input<string>;
  readonly serviceAccount: pulumi.Input<string>;
  /** The name of the secret with further variables. */
  readonly secret: pulumi.Input<string>;
  /** The role whose sessions are handed out for tables; undefined where there is none. */
  readonly vendingRole: pulumi.Output<string> | undefined;
  /** The name of Litestream's settings; undefined without it. */
  readonly litestream: pulumi.Input<string> | undefined;
}

type PodSpec = kubernetes.types.input.core.v1.PodSpec;
type Container = kubernetes.types.input.core.v1.Container;

/** What Pod Security's level `restricted` asks for, and a file system that cannot be written. */
const containerSecurity = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ["ALL"] },
};

/** The pod of the catalog, alike for all databases but for its volumes. */
export function catalogPodSpec(config: StackConfig, cluster: Cluster, args: CatalogPodArgs) {
  const { catalog } = config;
  const isSqlite = catalog.database === "sqlite";
  const tables = tablesVolume(config);
  const dataMount = { name: dataVolume.name, mountPath: dataVolume.path };
  return {
    serviceAccountName: args.serviceAccount,
    automountServiceAccountToken: false,
    priorityClassName: priorityClasses(config).control,
    nodeSelector: cluster.coreSelector,
    terminationGracePeriodSeconds: stopSeconds,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: userId,
      runAsGroup: userId,
      fsGroup: userId,
      fsGroupChangePolicy: "OnRootMismatch",
      seccompProfile: { type: "RuntimeDefault" },
    },
    ...(args.litestream !== undefined && { initContainers: [restoreContainer(config)] }),
    containers: [
      {
        name: catalogContainer,
        image: args.image,
        env: environment(config, cluster, args),
        envFrom: secretsOf(args.secret, catalog.environmentSecret),
        ports: [{ name: "http", containerPort: catalogPort }],
        securityContext: containerSecurity,
        resources: {
          requests: { cpu: catalog.resources.cpu, memory: catalog.resources.memory },
          // Memory is held to what was asked for; the CPU may use what nobody else wants.
          limits: { memory: catalog.resources.memory },
        },
        startupProbe: { httpGet: { path: "/health/live", port: "http" }, periodSeconds: 2, failureThreshold: 60 },
        livenessProbe: { httpGet: { path: "/health/live", port: "http" }, periodSeconds: 10, timeoutSeconds: 5 },
        readinessProbe: { httpGet: { path: "/health/ready", port: "http" }, periodSeconds: 5, timeoutSeconds: 5 },
        // Requests still come for a moment after the pod is to end; only then is it told to.
        lifecycle: { preStop: { sleep: { seconds: 5 } } },
        volumeMounts: [
          dataMount,
          { name: "tmp", mountPath: "/tmp" },
          ...(tables === undefined ? [] : [{ name: "tables", mountPath: tables.path }]),
        ],
      },
      ...(args.litestream === undefined ? [] : [replicateContainer(config)]),
    ],
    volumes: [
      { name: "tmp", emptyDir: { sizeLimit: "256Mi" } },
      // With PostgreSQL the volume has the development keys alone.
      ...(isSqlite ? [] : [{ name: dataVolume.name, emptyDir: { sizeLimit: "64Mi" } }]),
      ...(tables === undefined ? [] : [{ name: "tables", persistentVolumeClaim: { claimName: tables.claim } }]),
      ...(args.litestream === undefined ? [] : [{ name: "litestream", configMap: { name: args.litestream } }]),
    ],
  } satisfies PodSpec;
}

function secretsOf(...names: readonly (pulumi.Input<string> | undefined)[]) {
  return names.filter((name) => name !== undefined).map((name) => ({ secretRef: { name } }));
}

/** The settings of the catalog that are no secrets; docs/settings.md. */
function environment(
  config: StackConfig,
  cluster: Cluster,
  { vendingRole }: CatalogPodArgs,
): { name: string; value: pulumi.Input<string> }[] {
  const { catalog } = config;
  const { oidc } = catalog;
  const variables: Record<string, pulumi.Input<string> | undefined> = {
    TILTYARD_HOST: "0.0.0.0",
    TILTYARD_PORT: String(catalogPort),
    TILTYARD_DATA_DIR: dataVolume.path,
    TILTYARD_WAREHOUSE: cluster.bucketUri,
    TILTYARD_AUTH: oidc === undefined ? "development" : "oidc",
    // API keys and the catalog's own tokens are asked for all the same. The network policy
    // keeps everyone else away, and an ingress is not made without an issuer.
    TILTYARD_ALLOW_INSECURE: oidc === undefined ? "1" : undefined,
    TILTYARD_OIDC_ISSUER: oidc?.issuer,
    TILTYARD_OIDC_AUDIENCE: oidc?.audience,
    TILTYARD_OIDC_JWKS_URL: oidc?.jwksUrl,
    TILTYARD_VEND_CREDENTIALS: catalog.vendCredentials ? "1" : undefined,
    TILTYARD_VEND_S3_ROLE: vendingRole,
    TILTYARD_RATE_LIMIT: catalog.rateLimit?.toString(),
  };
  const set = Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]));
  return [...set, ...cloudEnvironment(config)];
}

/** What an object store's library cannot find out by itself. */
function cloudEnvironment({ variant, region }: StackConfig): { name: string; value: string }[] {
  return variant === "eks" ? [{ name: "AWS_REGION", value: region }] : [];
}

const litestreamImage = `litestream/litestream:${versions.litestream}`;
const litestreamSettings = "/etc/litestream/litestream.yml";

function litestreamContainer(name: string, args: string[], config: StackConfig) {
  return {
    name,
    image: litestreamImage,
    args,
    env: cloudEnvironment(config),
    envFrom: secretsOf(config.catalog.environmentSecret),
    securityContext: containerSecurity,
    resources: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    volumeMounts: [
      { name: dataVolume.name, mountPath: dataVolume.path },
      { name: "litestream", mountPath: "/etc/litestream", readOnly: true },
      { name: "tmp", mountPath: "/tmp" },
    ],
  } satisfies Container;
}

/** A volume that is lost is filled from the bucket; one that has a database, and a new stack, are left as they are. */
function restoreContainer(config: StackConfig) {
  const args = ["-if-db-not-exists", "-if-replica-exists", dataVolume.databaseFile];
  return litestreamContainer("restore", ["restore", "-config", litestreamSettings, ...args], config);
}

function replicateContainer(config: StackConfig) {
  return litestreamContainer("litestream", ["replicate", "-config", litestreamSettings], config);
}
