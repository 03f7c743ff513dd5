import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import {
  isAtLeast,
  operatorVersionMin,
  rayGpuImage,
  rayImage,
  rayVersionMin,
  tokenOperatorVersionMin,
  tokenRayVersionMin,
} from "@tiltyard/platform";
import { documentationPage, ownValue } from "@tiltyard/protocol";
import { dataVolume } from "../components/catalog/pod-parts.ts";
import { architectures } from "../machines.ts";
import { architecturesOfRoles, defaultPools, resolvePools, roleLabels } from "../node-pools.ts";
import { gkeOperatorPairs, selfDeployedAnywhere } from "../versions.ts";
import { supportNotice } from "./kubernetes-support.ts";
import { problemsOfNames } from "./name-rules.ts";
import { problemsOfNetwork } from "./network-rules.ts";
import { problemsOfPrincipals } from "./principal-rules.ts";
import { fileFolder } from "./setting-types.ts";
import type { Reading, SettingName, Settings } from "./settings.ts";
import { problemsOfStorage } from "./storage-rules.ts";
import { problemsOfTeams } from "./team-rules.ts";

interface Rule {
  readonly needs: readonly SettingName[];
  problemsOf(settings: Settings, today: Date): readonly string[];
}

/** Creates a rule about several settings, which is checked only if all of them are valid individually. */
function rule<const Name extends SettingName>(
  needs: readonly Name[],
  problemsOf: (settings: Reading<Name>, today: Date) => readonly string[],
): Rule {
  return { needs, problemsOf };
}

export const rules: readonly Rule[] = [
  rule(["nodePools", "labelDomain", "labelKeys"], (settings) =>
    "nodePools" in settings ? poolsOf(settings).problems : [],
  ),
  rule(["ray", "operator"], problemsOfRay),
  rule(["ray", "catalog"], problemsOfBucketAccess),
  rule(["ray", "catalog", "runner", "nodePools", "labelDomain", "labelKeys"], problemsOfRayImage),
  rule(["operator", "kubernetesVersion"], problemsOfOperator),
  rule(["kubernetesVersion", "releaseChannel", "supportType"], problemsOfSupport),
  rule(["operator", "kueue", "chartValues"], problemsOfCharts),
  rule(["clientPrincipals", "adminPrincipals", "teams"], problemsOfPrincipals),
  rule(["teams", "namespace", "catalog", "quota", "kueue", "operator"], problemsOfTeams),
  rule(["kubeconfig", "context"], problemsOfKubeconfig),
  rule(["namespace", "catalog"], problemsOfNamespaces),
  rule(["clusterName", "imageCache"], problemsOfImageCache),
  rule(["imageDigests", "ray"], problemsOfDigests),
  rule(["catalog"], problemsOfCatalogImage),
  rule(["catalog", "bucket", "network"], problemsOfCatalog),
  rule(["catalog", "network"], problemsOfDatabase),
  rule(["network"], problemsOfNetwork),
  rule(["clusterName", "clientRole", "teams", "labelDomain", "labelKeys"], problemsOfNames),
  rule(["catalog", "bucket", "keepData", "objectVersionDays", "encryptionKey"], problemsOfStorage),
];

export type OnCloud<Name extends SettingName> = Extract<Reading<Name>, { readonly variant: "gke" | "eks" }>;

export function poolsOf(settings: OnCloud<"nodePools" | "labelDomain" | "labelKeys">): ReturnType<typeof resolvePools> {
  const { variant, nodePools = defaultPools(variant) } = settings;
  return resolvePools(nodePools, variant, (role) => roleLabels(settings, role));
}

function problemsOfRay(settings: Reading<"ray" | "operator">): string[] {
  const { version, auth } = settings.ray;
  if (!isAtLeast(version, rayVersionMin))
    return [`ray.version: must be ${rayVersionMin.join(".")} or later, not ${version}`];
  const hindrance = tokenHindrance(settings);
  return auth === "token" && hindrance !== undefined ? [`ray.auth: token needs ${hindrance}`] : [];
}

/** Pods without a right to the bucket need the catalog's credentials. */
function problemsOfBucketAccess(settings: Reading<"ray" | "catalog">): string[] {
  if (settings.ray.bucketAccess === "direct") return [];
  if (settings.variant === "existing")
    return [
      "ray.bucketAccess: vended must not be set with existing, where the stack does not manage the rights of pods",
    ];
  const { enabled, vendCredentials } = settings.catalog;
  return enabled && vendCredentials ? [] : ["ray.bucketAccess: vended needs catalog.vendCredentials"];
}

/** Returns the version that Ray clusters of a stack lack for tokens; undefined when they can require one. */
export function tokenHindrance({ ray, operator }: Reading<"ray" | "operator">): string | undefined {
  if (!isAtLeast(ray.version, tokenRayVersionMin)) return `a ray.version of ${tokenRayVersionMin.join(".")} or later`;
  // Google does not document the operator version of its add-on.
  const operatorVersion = operator.source === "none" ? undefined : (operator.version ?? "1.0");
  if (operatorVersion === undefined || isAtLeast(operatorVersion, tokenOperatorVersionMin)) return undefined;
  return `an operator.version of ${tokenOperatorVersionMin.join(".")} or later`;
}

/**
 * Reports whether the stack builds images of Ray for jobs: it runs jobs, has a registry, and the settings specify no
 * image.
 */
export function buildsRayImages({ variant, ray, catalog, runner }: Reading<"ray" | "catalog" | "runner">): boolean {
  return variant !== "existing" && ray.build && ray.image === undefined && catalog.enabled && runner.enabled;
}

/**
 * Returns the problems of Ray's image. Heads and CPU workers share one image, and each of Ray's own images supports
 * only one architecture.
 */
function problemsOfRayImage(
  settings: Reading<"ray" | "catalog" | "runner" | "nodePools" | "labelDomain" | "labelKeys">,
): string[] {
  if (settings.ray.image !== undefined || buildsRayImages(settings) || !("nodePools" in settings)) return [];
  const { head, workerCpu } = architecturesOfRoles(poolsOf(settings).pools);
  if (head === workerCpu) return [];
  return [`ray.image: is required where heads are ${head} and CPU workers ${workerCpu}: one image that is for both`];
}

/** Returns the problems of version pairs that are known not to work. */
function problemsOfOperator(settings: Reading<"operator" | "kubernetesVersion">): string[] {
  const { variant, operator } = settings;
  if (operator.source === "gke-addon" && variant !== "gke")
    return ["operator.source: gke-addon exists on gke only; use helm"];
  if (operator.source === "helm" && operator.crds && operator.chart.startsWith("oci://"))
    return ["operator.crds: must be false with a chart of an OCI registry, whose definitions the stack does not read"];
  if (operator.source === "none" || operator.version === undefined) return [];
  if (!isAtLeast(operator.version, operatorVersionMin))
    return [`operator.version: must be ${operatorVersionMin.join(".")} or later, not ${operator.version}`];
  if (variant !== "gke") return [];
  const { kubernetesVersion = "no certain version" } = settings;
  const required = ownValue(gkeOperatorPairs, kubernetesVersion);
  const isPair = required === operator.version.split(".").slice(0, 2).join(".");
  const isRecent = isAtLeast(operator.version, selfDeployedAnywhere);
  const pairs = Object.entries(gkeOperatorPairs).map(([kubernetes, its]) => `${kubernetes} with ${its}`);
  if (operator.source === "gke-addon" && !isPair && (required !== undefined || !isRecent))
    return [
      `operator.version: GKE's add-on exists in these pairs of kubernetesVersion and operator: ${pairs.join(", ")}; ` +
        `this stack has ${kubernetesVersion} with ${operator.version}. Leave the version out with a later ` +
        "kubernetesVersion, or use source: helm",
    ];
  if (operator.source === "helm" && !isPair && !isRecent)
    return [
      `operator.version: on gke it must be ${selfDeployedAnywhere.join(".")} or later, or one of the pairs ${pairs.join(", ")}`,
    ];
  return [];
}

function problemsOfSupport(
  settings: Reading<"kubernetesVersion" | "releaseChannel" | "supportType">,
  today: Date,
): string[] {
  const notice = "kubernetesVersion" in settings ? supportNotice(settings, today) : undefined;
  return notice?.isRefusal ? [notice.message] : [];
}

/** Reports whether the setting is the text of a kubeconfig rather than the path of a file. */
export function isKubeconfigText(kubeconfig: string): boolean {
  return kubeconfig.includes("\n") || kubeconfig.startsWith("{");
}

/** Reads the setting. @throws Error for a missing file, and for a text that is no kubeconfig. */
export function readKubeconfig(kubeconfig: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromString(isKubeconfigText(kubeconfig) ? kubeconfig : readFileSync(resolve(kubeconfig), "utf8"));
  return config;
}

function problemsOfKubeconfig(settings: Reading<"kubeconfig" | "context">): string[] {
  if (!("kubeconfig" in settings) || settings.kubeconfig === undefined) return [];
  const { kubeconfig, context } = settings;
  const path = resolve(kubeconfig);
  if (!isKubeconfigText(kubeconfig) && !statSync(path, { throwIfNoEntry: false })?.isFile())
    return [`kubeconfig: must be the text of a kubeconfig or the path of a file; ${path} is not a file`];
  let config: KubeConfig;
  try {
    config = readKubeconfig(kubeconfig);
  } catch {
    return ["kubeconfig: must be a kubeconfig in YAML or JSON"];
  }
  if (context !== undefined) config.setCurrentContext(context);
  if (config.getCurrentCluster() !== null) return [];
  return context === undefined
    ? ["kubeconfig: must have a current context with a cluster, or set context"]
    : [
        `context: must be one of ${config
          .getContexts()
          .map(({ name }) => name)
          .join(", ")}`,
      ];
}

/** Returns the problems of values for charts that the stack does not install. */
function problemsOfCharts({ operator, kueue, chartValues }: Reading<"operator" | "kueue" | "chartValues">): string[] {
  const problems: string[] = [];
  if (chartValues.kuberayOperator !== undefined && operator.source !== "helm")
    problems.push("chartValues.kuberayOperator: requires operator.source helm");
  if (chartValues.kueue !== undefined && kueue?.source !== "helm")
    problems.push("chartValues.kueue: requires kueue.source helm");
  return problems;
}

/**
 * Returns the problems of the image cache. ECR allows prefixes of 30 characters, which contain the name of the cluster
 * and of the registry.
 */
function problemsOfImageCache({ clusterName, ...settings }: Reading<"clusterName" | "imageCache">): string[] {
  const longest = 30 - "/quay".length;
  const isOnAws = "imageCache" in settings && typeof settings.imageCache === "object";
  if (!isOnAws || clusterName.length <= longest) return [];
  return [`imageCache: needs a clusterName of ${longest} characters at most`];
}

/** The settings pin Ray's own images alone. The Dockerfile of the catalog has the digest of its base. */
function problemsOfDigests(settings: Reading<"imageDigests" | "ray">): string[] {
  if (!("imageDigests" in settings)) return [];
  const { version } = settings.ray;
  const bases = architectures.flatMap((each) => [rayImage(version, each), rayGpuImage(version, each)]);
  return Object.keys(settings.imageDigests)
    .filter((name) => !bases.includes(name))
    .map((name) => `imageDigests.${name}: must be an image of Ray: ${bases.join(", ")}`);
}

/** The right to create Ray clusters in a namespace is the right to mount its secrets and run as its accounts. */
function problemsOfNamespaces({ namespace, catalog }: Reading<"namespace" | "catalog">): string[] {
  if (catalog.namespace === namespace)
    return [
      "catalog.namespace: must not be namespace: a principal that may create Ray clusters in a namespace may mount all of its secrets",
    ];
  const longest = 63 - "-catalog".length;
  if (catalog.namespace === undefined && namespace.length > longest)
    return [`catalog.namespace: is required when namespace has more than ${longest} characters`];
  return [];
}

function problemsOfCatalogImage({ variant, catalog: { enabled, image } }: Reading<"catalog">): string[] {
  return variant === "existing" && enabled && image === undefined
    ? [`catalog.image: is required on an existing cluster: ${documentationPage("existing")} shows how to build it`]
    : [];
}

function problemsOfCatalog(settings: Reading<"catalog" | "bucket" | "network">): string[] {
  const { variant, catalog, bucket } = settings;
  if (!catalog.enabled) return [];
  const problems: string[] = [];
  const { database, replicas, litestream, ingress, gateway, oidc, moveFrom } = catalog;
  if (database === "sqlite" && (replicas ?? 1) > 1)
    problems.push("catalog.replicas: SQLite has one writer; use PostgreSQL (catalog.database) for several replicas");
  if (moveFrom !== undefined && database === "sqlite")
    problems.push("catalog.moveFrom: needs PostgreSQL in catalog.database, to which it moves the catalog");
  if (litestream !== false && database !== "sqlite" && moveFrom === undefined)
    problems.push("catalog.litestream: requires catalog.database sqlite");
  if (typeof litestream === "object" && nameOf(litestream.bucket) === nameOf(bucket))
    problems.push("catalog.litestream.bucket: must be another bucket than that of the tables, which Ray jobs write to");
  for (const [name, entry] of Object.entries({ ingress, gateway }))
    if (entry !== undefined && oidc === undefined)
      problems.push(
        `catalog.${name}: a catalog that is reached from outside needs catalog.oidc, not development tokens`,
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
function problemsOfDatabase(settings: Reading<"catalog" | "network">): string[] {
  if (settings.variant !== "gke" || !settings.network.isAdopted || settings.catalog.database !== "postgres") return [];
  return [
    "catalog.database: must be {url: ...} in an existing vpc, because the stack does not manage its peering with Cloud SQL",
  ];
}

/** Returns `s3://name` without a folder. */
function nameOf(bucket: string | undefined): string | undefined {
  return bucket?.split("/").slice(0, 3).join("/");
}
