import {
  isAtLeast,
  operatorVersionMin,
  rayGpuImage,
  rayImage,
  rayVersionMin,
  tokenOperatorVersionMin,
  tokenRayVersionMin,
} from "@tiltyard/platform";
import { ownValue } from "@tiltyard/protocol";
import { architectures } from "../machines.ts";
import { architecturesOfRoles, defaultPools, resolvePools, roleLabels } from "../node-pools.ts";
import { gkeOperatorPairs, selfDeployedAnywhere } from "../versions.ts";
import {
  problemsOfCatalog,
  problemsOfCatalogImage,
  problemsOfDatabase,
  problemsOfNamespaces,
} from "./catalog-rules.ts";
import { problemsOfKubeconfig } from "./kubeconfig-rules.ts";
import { supportNotice } from "./kubernetes-support.ts";
import { problemsOfNames } from "./name-rules.ts";
import { problemsOfNetwork } from "./network-rules.ts";
import { problemsOfPrincipals } from "./principal-rules.ts";
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
  const missing = missingForTokens(settings);
  return auth === "token" && missing !== undefined ? [`ray.auth: token needs ${missing}`] : [];
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
export function missingForTokens({ ray, operator }: Reading<"ray" | "operator">): string | undefined {
  if (!isAtLeast(ray.version, tokenRayVersionMin)) return `a ray.version of ${tokenRayVersionMin.join(".")} or later`;
  // Google does not document the operator version of its add-on.
  const operatorVersion = operator.source === "none" ? undefined : (operator.version ?? "1.0");
  if (operatorVersion === undefined || isAtLeast(operatorVersion, tokenOperatorVersionMin)) return undefined;
  return `an operator.version of ${tokenOperatorVersionMin.join(".")} or later`;
}

/** Reports whether the stack runs jobs, which need its catalog. */
export function runsJobs({ catalog, runner }: Pick<Reading<"catalog" | "runner">, "catalog" | "runner">): boolean {
  return catalog.enabled && runner.enabled;
}

/**
 * Reports whether the stack builds images of Ray for jobs: it runs jobs, has a registry, and the settings specify no
 * image.
 */
export function buildsRayImages(settings: Reading<"ray" | "catalog" | "runner">): boolean {
  const { variant, ray } = settings;
  return variant !== "existing" && ray.build && ray.image === undefined && runsJobs(settings);
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
  return [`imageCache: needs a clusterName of at most ${longest} characters`];
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
