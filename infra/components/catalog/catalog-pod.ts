import type * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogContainer, catalogLabels, catalogPort } from "@tiltyard/platform";
import { placedOn } from "../../node-pools.ts";
import { fileFolder } from "../../settings/setting-types.ts";
import type { CatalogDeps } from "./catalog-deps.ts";
import { trustedProxiesOf } from "./catalog-entry.ts";
import type { Litestream } from "./litestream.ts";
import { containerSecurity, dataVolume, secretsOf, userId } from "./pod-parts.ts";

/** The grace period of the pod. On shutdown, the catalog allows accepted requests 25 seconds. */
const stopSeconds = 40;

export interface CatalogPodArgs {
  readonly image: pulumi.Input<string>;
  readonly serviceAccount: pulumi.Input<string>;
  /** The annotations of the service account with the identity in the cloud. */
  readonly identity: pulumi.Input<Record<string, string>>;
  /** The name of the secret with further variables. */
  readonly secret: pulumi.Input<string>;
  /** The name of the secret with the keys of the secrets of Functions. */
  readonly secretsKeys: pulumi.Input<string>;
  /** The role whose sessions are vended for tables; undefined if vending is disabled. */
  readonly vendingRole: pulumi.Output<string> | undefined;
  /** The containers of Litestream; undefined if it is disabled. */
  readonly litestream: Litestream | undefined;
}

type PodSpec = kubernetes.types.input.core.v1.PodSpec;

/** Returns the common part of all pods with the catalog's image: their account, node and user. */
export function basePodSpec({ cluster, platform }: CatalogDeps, { serviceAccount }: CatalogPodArgs) {
  return {
    serviceAccountName: serviceAccount,
    automountServiceAccountToken: false,
    // The variables of the service would have the prefix of the catalog's settings: TILTYARD_CATALOG_PORT.
    enableServiceLinks: false,
    priorityClassName: platform.controlPriorityClass,
    ...placedOn(cluster.coreSelector),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: userId,
      runAsGroup: userId,
      fsGroup: userId,
      fsGroupChangePolicy: "OnRootMismatch",
      seccompProfile: { type: "RuntimeDefault" },
    },
  } satisfies Omit<PodSpec, "containers">;
}

/** Returns the common part of all containers with the catalog's image: their settings, secrets and resources. */
export function baseContainer(deps: CatalogDeps, args: CatalogPodArgs) {
  const { resources, environmentSecret } = deps.settings;
  return {
    image: args.image,
    env: environment(deps, args),
    envFrom: secretsOf(args.secret, environmentSecret),
    securityContext: containerSecurity,
    resources: {
      requests: { cpu: resources.cpu, memory: resources.memory },
      // Memory is limited to the request; CPU may also use idle capacity of the node.
      limits: { memory: resources.memory },
    },
  };
}

/**
 * Returns the metadata of the catalog's pods. On most clouds, pods receive the identity of their account when they are
 * created, so another identity must create new ones.
 */
export function catalogPodMetadata({ identity }: CatalogPodArgs) {
  return { labels: catalogLabels, annotations: identity };
}

/** Returns the pod of the catalog. Only its volumes depend on the kind of the database. */
export function catalogPodSpec(deps: CatalogDeps, args: CatalogPodArgs) {
  const { cluster, settings } = deps;
  const isSqlite = settings.database === "sqlite";
  const { litestream } = args;
  const keys = secretsKeysOf(args.secretsKeys);
  const dataMount = { name: dataVolume.name, mountPath: dataVolume.path };
  return {
    ...basePodSpec(deps, args),
    terminationGracePeriodSeconds: stopSeconds,
    ...(isSqlite && litestream !== undefined && { initContainers: [litestream.restore, litestream.replicate] }),
    containers: [
      {
        name: catalogContainer,
        ...baseContainer(deps, args),
        ports: [{ name: "http", containerPort: catalogPort }],
        startupProbe: { httpGet: { path: "/health/live", port: "http" }, periodSeconds: 2, failureThreshold: 60 },
        livenessProbe: { httpGet: { path: "/health/live", port: "http" }, periodSeconds: 10, timeoutSeconds: 5 },
        readinessProbe: { httpGet: { path: "/health/ready", port: "http" }, periodSeconds: 5, timeoutSeconds: 5 },
        // Requests still arrive for a short time after the deletion of the pod. SIGTERM follows after this delay.
        lifecycle: { preStop: { sleep: { seconds: 5 } } },
        volumeMounts: [
          dataMount,
          { name: "tmp", mountPath: "/tmp" },
          keys.mount,
          ...(settings.volumeClaim === undefined
            ? []
            : [{ name: "tables", mountPath: cluster.services.bucketUri.apply(fileFolder) }]),
        ],
      },
    ],
    volumes: [
      { name: "tmp", emptyDir: { sizeLimit: "256Mi" } },
      keys.volume,
      // With PostgreSQL, the volume contains only the development keys.
      ...(isSqlite ? [] : [{ name: dataVolume.name, emptyDir: { sizeLimit: "64Mi" } }]),
      ...(isSqlite && litestream !== undefined ? [litestream.volume] : []),
      ...(settings.volumeClaim === undefined
        ? []
        : [{ name: "tables", persistentVolumeClaim: { claimName: settings.volumeClaim } }]),
    ],
  } satisfies PodSpec;
}

/** The key of the Secret with the keys of the secrets of Functions, and the name of its file. */
export const secretsKeysFile = "keys";
const secretsKeysFolder = "/etc/tiltyard/secrets";

/** Returns the volume of the keys of secrets, which only the container of the catalog mounts. */
function secretsKeysOf(secretName: pulumi.Input<string>) {
  const name = "secrets-keys";
  const items = [{ key: secretsKeysFile, path: secretsKeysFile }];
  return {
    mount: { name, mountPath: secretsKeysFolder, readOnly: true },
    volume: { name, secret: { secretName, items, defaultMode: 0o440 } },
  };
}

/** Returns the public settings of the catalog (docs/reference/settings.md). */
function environment(
  deps: CatalogDeps,
  { vendingRole }: CatalogPodArgs,
): { name: string; value: pulumi.Input<string> }[] {
  const { cluster, platform, settings, rayClusters } = deps;
  const { oidc } = settings;
  const variables: Record<string, pulumi.Input<string> | undefined> = {
    TILTYARD_HOST: "0.0.0.0",
    TILTYARD_PORT: String(catalogPort),
    TILTYARD_DATA_DIR: dataVolume.path,
    TILTYARD_WAREHOUSE: cluster.services.bucketUri,
    TILTYARD_AUTH: oidc === undefined ? "development" : "oidc",
    // API keys and the catalog's own tokens are required nevertheless. The network policy blocks all other pods, and an
    // ingress requires an issuer.
    TILTYARD_ALLOW_INSECURE: oidc === undefined ? "1" : undefined,
    TILTYARD_OIDC_ISSUER: oidc?.issuer,
    TILTYARD_OIDC_AUDIENCE: oidc?.audience,
    TILTYARD_OIDC_JWKS_URL: oidc?.jwksUrl,
    TILTYARD_OIDC_CLIENT_ID: oidc?.clientId,
    TILTYARD_OIDC_SCOPE: oidc?.scope,
    TILTYARD_ISOLATED_NAMESPACES: platform.teams.map(({ name }) => name).join() || undefined,
    TILTYARD_RAY_CLUSTERS: rayClusters?.join(),
    TILTYARD_VEND_CREDENTIALS: settings.vendCredentials ? "1" : undefined,
    TILTYARD_VEND_S3_ROLE: vendingRole,
    TILTYARD_RATE_LIMIT: settings.rateLimit?.toString(),
    TILTYARD_TRUSTED_PROXIES: trustedProxiesOf(settings)?.toString(),
    TILTYARD_SECRETS_KEY_FILE: `${secretsKeysFolder}/${secretsKeysFile}`,
    ...cluster.services.podEnvironment,
    ...settings.environment,
  };
  return Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]));
}
