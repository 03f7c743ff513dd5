import { documentationPage } from "@tiltyard/protocol";
import { dataVolume } from "../components/catalog/pod-parts.ts";
import { catalogSuffix, hasSqliteVolume } from "./catalog-settings.ts";
import { fileFolder } from "./setting-types.ts";
import type { Reading } from "./settings.ts";

/**
 * Returns the problems of the namespaces of Ray and of the catalog. The right to create Ray clusters in a namespace is the
 * right to mount its secrets and run as its accounts.
 */
export function problemsOfNamespaces({ namespace, catalog }: Reading<"namespace" | "catalog">): string[] {
  if (catalog.namespace === namespace)
    return [
      "catalog.namespace: must not be namespace: a principal that may create Ray clusters in a namespace may mount all of its secrets",
    ];
  const longest = 63 - catalogSuffix.length;
  if (catalog.namespace === undefined && namespace.length > longest)
    return [`catalog.namespace: is required when namespace has more than ${longest} characters`];
  return [];
}

/** Returns the problem of a catalog without an image, which only a stack with a registry can build. */
export function problemsOfCatalogImage({ variant, catalog: { enabled, image } }: Reading<"catalog">): string[] {
  return variant === "existing" && enabled && image === undefined
    ? [`catalog.image: is required on an existing cluster: ${documentationPage("existing")} shows how to build it`]
    : [];
}

/** Returns the problems of the catalog: its database, its backups, its entry and its bucket. */
export function problemsOfCatalog(settings: Reading<"catalog" | "bucket" | "network">): string[] {
  const { variant, catalog, bucket } = settings;
  if (!catalog.enabled) return [];
  const problems: string[] = [];
  const { database, replicas, litestream, ingress, gateway, oidc, moveFrom } = catalog;
  if (database === "sqlite" && (replicas ?? 1) > 1)
    problems.push("catalog.replicas: SQLite has one writer; use PostgreSQL (catalog.database) for several replicas");
  if (moveFrom !== undefined && database === "sqlite")
    problems.push("catalog.moveFrom: needs PostgreSQL in catalog.database, to which it moves the catalog");
  if (litestream !== false && !hasSqliteVolume(catalog))
    problems.push("catalog.litestream: requires catalog.database sqlite");
  if (typeof litestream === "object" && nameOf(litestream.bucket) === nameOf(bucket))
    problems.push("catalog.litestream.bucket: must be another bucket than that of the tables, which Ray jobs write to");
  if ((ingress !== undefined || gateway !== undefined) && oidc === undefined)
    problems.push(
      "catalog.oidc: is required with an ingress or a gateway, through which development tokens must not be used",
    );
  if (ingress?.className === "gce-internal" && !hasOwnProxies(settings) && catalog.allowedCidrs.length === 0)
    problems.push(
      "catalog.allowedCidrs: is required with gce-internal in an existing network: the range of its proxy-only subnet, from " +
        "which the load balancer calls the catalog. A firewall rule must admit it too",
    );
  if (ingress !== undefined && gateway !== undefined)
    problems.push("catalog.gateway: replaces catalog.ingress; set one of them");
  if (ingress !== undefined && ingress.tlsSecret === undefined && !hasOwnCertificate(ingress))
    problems.push("catalog.ingress.tlsSecret: is required, or an annotation that names a certificate of the cloud");
  const volumeClaim = variant === "existing" ? settings.catalog.volumeClaim : undefined;
  if (bucket?.startsWith("file:") && volumeClaim === undefined)
    problems.push(
      "catalog.volumeClaim: is required with a file: bucket: the claim of a volume that all nodes can mount",
    );
  if (bucket?.startsWith("file:") && podFolders.includes(fileFolder(bucket)))
    problems.push(`bucket: must not be a folder of the catalog's pod: ${podFolders.join(", ")}`);
  if (volumeClaim !== undefined && !bucket?.startsWith("file:"))
    problems.push("catalog.volumeClaim: requires a file: bucket");
  return problems;
}

/** The folders at which the catalog's pod mounts other volumes. */
const podFolders: readonly string[] = [dataVolume.path, "/tmp"];

/** Reports whether the stack creates the proxy-only subnet of internal load balancers. */
function hasOwnProxies(settings: Reading<"network">): boolean {
  return settings.variant === "gke" && !settings.network.isAdopted;
}

const certificateAnnotations = [
  "alb.ingress.kubernetes.io/certificate-arn",
  "ingress.gcp.kubernetes.io/pre-shared-cert",
  "networking.gke.io/managed-certificates",
];

/**
 * Reports whether an ingress has a certificate of the cloud. The AWS controller also finds the ACM certificate of the
 * host automatically.
 */
function hasOwnCertificate({ className, annotations }: { className: string; annotations: Record<string, string> }) {
  return className === "alb" || certificateAnnotations.some((annotation) => Object.hasOwn(annotations, annotation));
}

/**
 * Returns the problems of the database. Google peers a network with its databases only once, for all users of the
 * network.
 */
export function problemsOfDatabase(settings: Reading<"catalog" | "network">): string[] {
  if (settings.variant !== "gke" || !settings.network.isAdopted || settings.catalog.database !== "postgres") return [];
  return [
    "catalog.database: must be {url: ...} in an existing vpc, because the stack does not manage its peering with Cloud SQL",
  ];
}

/** Returns `s3://name` without a folder. */
function nameOf(bucket: string | undefined): string | undefined {
  return bucket?.split("/").slice(0, 3).join("/");
}
