import type * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogContainer, catalogPort } from "@tiltyard/protocol";
import { fileFolder } from "../../file-folder.ts";
import { placedOn } from "../../node-pools.ts";
import type { CatalogPlace } from "./catalog.ts";
import type { Litestream } from "./litestream.ts";
import { containerSecurity, dataVolume, secretsOf, userId } from "./pod-parts.ts";

/** The catalog gives requests that it has accepted 25 seconds when it is told to stop. */
const stopSeconds = 40;

export interface CatalogPodArgs {
  readonly image: pulumi.Input<string>;
  readonly serviceAccount: pulumi.Input<string>;
  /** The name of the secret with further variables. */
  readonly secret: pulumi.Input<string>;
  /** The role whose sessions are handed out for tables; undefined where there is none. */
  readonly vendingRole: pulumi.Output<string> | undefined;
  /** Undefined without it. */
  readonly litestream: Litestream | undefined;
}

type PodSpec = kubernetes.types.input.core.v1.PodSpec;

/** What every pod on the catalog's image has: its account, its node, its user. */
export function basePodSpec({ cluster, platform }: CatalogPlace, { serviceAccount }: CatalogPodArgs) {
  return {
    serviceAccountName: serviceAccount,
    automountServiceAccountToken: false,
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

/** What every container on the catalog's image has: its settings, its secrets, its resources. */
export function baseContainer(place: CatalogPlace, args: CatalogPodArgs) {
  const { resources, environmentSecret } = place.settings;
  return {
    image: args.image,
    env: environment(place, args),
    envFrom: secretsOf(args.secret, environmentSecret),
    securityContext: containerSecurity,
    resources: {
      requests: { cpu: resources.cpu, memory: resources.memory },
      // Memory is limited to the request; CPU may also use what is idle on the node.
      limits: { memory: resources.memory },
    },
  };
}

/** The pod of the catalog. Only its volumes depend on the database. */
export function catalogPodSpec(place: CatalogPlace, args: CatalogPodArgs) {
  const { cluster, settings } = place;
  const isSqlite = settings.database === "sqlite";
  const { litestream } = args;
  const dataMount = { name: dataVolume.name, mountPath: dataVolume.path };
  return {
    ...basePodSpec(place, args),
    terminationGracePeriodSeconds: stopSeconds,
    ...(isSqlite && litestream !== undefined && { initContainers: [litestream.restore, litestream.replicate] }),
    containers: [
      {
        name: catalogContainer,
        ...baseContainer(place, args),
        ports: [{ name: "http", containerPort: catalogPort }],
        startupProbe: { httpGet: { path: "/health/live", port: "http" }, periodSeconds: 2, failureThreshold: 60 },
        livenessProbe: { httpGet: { path: "/health/live", port: "http" }, periodSeconds: 10, timeoutSeconds: 5 },
        readinessProbe: { httpGet: { path: "/health/ready", port: "http" }, periodSeconds: 5, timeoutSeconds: 5 },
        // Requests still arrive for a moment after the deletion of the pod; SIGTERM follows after that.
        lifecycle: { preStop: { sleep: { seconds: 5 } } },
        volumeMounts: [
          dataMount,
          { name: "tmp", mountPath: "/tmp" },
          ...(settings.volumeClaim === undefined
            ? []
            : [{ name: "tables", mountPath: cluster.services.bucketUri.apply(fileFolder) }]),
        ],
      },
    ],
    volumes: [
      { name: "tmp", emptyDir: { sizeLimit: "256Mi" } },
      // With PostgreSQL the volume has the development keys alone.
      ...(isSqlite ? [] : [{ name: dataVolume.name, emptyDir: { sizeLimit: "64Mi" } }]),
      ...(isSqlite && litestream !== undefined ? [litestream.volume] : []),
      ...(settings.volumeClaim === undefined
        ? []
        : [{ name: "tables", persistentVolumeClaim: { claimName: settings.volumeClaim } }]),
    ],
  } satisfies PodSpec;
}

/** The settings of the catalog that are no secrets; docs/reference/settings.md. */
function environment(
  { cluster, platform, settings }: CatalogPlace,
  { vendingRole }: CatalogPodArgs,
): { name: string; value: pulumi.Input<string> }[] {
  const { oidc } = settings;
  const variables: Record<string, pulumi.Input<string> | undefined> = {
    TILTYARD_HOST: "0.0.0.0",
    TILTYARD_PORT: String(catalogPort),
    TILTYARD_DATA_DIR: dataVolume.path,
    TILTYARD_WAREHOUSE: cluster.services.bucketUri,
    TILTYARD_AUTH: oidc === undefined ? "development" : "oidc",
    // API keys and the catalog's own tokens are required all the same. The network policy
    // refuses all other pods, and an ingress is not made without an issuer.
    TILTYARD_ALLOW_INSECURE: oidc === undefined ? "1" : undefined,
    TILTYARD_OIDC_ISSUER: oidc?.issuer,
    TILTYARD_OIDC_AUDIENCE: oidc?.audience,
    TILTYARD_OIDC_JWKS_URL: oidc?.jwksUrl,
    TILTYARD_ISOLATED_NAMESPACES: platform.teams.map(({ name }) => name).join() || undefined,
    TILTYARD_VEND_CREDENTIALS: settings.vendCredentials ? "1" : undefined,
    TILTYARD_VEND_S3_ROLE: vendingRole,
    TILTYARD_RATE_LIMIT: settings.rateLimit?.toString(),
    ...cluster.services.podEnvironment,
  };
  return Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]));
}
