import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { isAtLeast, operatorVersionMin, rayVersionMin } from "@tiltyard/protocol";
import { defaultPools, resolvePools } from "./node-pools.ts";
import type { Settings } from "./settings.ts";
import { gkeOperatorPairs, selfDeployedAnywhere } from "./versions.ts";

type PoolSettings = Pick<Settings, "variant" | "nodePools">;

export function poolsOf({ variant, nodePools }: PoolSettings): ReturnType<typeof resolvePools> {
  if (variant !== "existing") return resolvePools(nodePools ?? defaultPools(variant), variant);
  const problem = "nodePools: a stack on an existing cluster makes no nodes; label those that are there";
  return { pools: [], problems: nodePools === undefined ? [] : [problem] };
}

/** What settings must be together; each is looked at when the settings that it needs are valid alone. */
export const rules: readonly {
  needs: readonly (keyof Settings)[];
  problemsOf: (settings: Settings) => readonly string[];
}[] = [
  { needs: ["variant", "nodePools"], problemsOf: (settings) => poolsOf(settings).problems },
  { needs: ["ray"], problemsOf: problemsOfRay },
  { needs: ["variant", "operator", "kubernetesVersion"], problemsOf: problemsOfOperator },
  { needs: ["variant", "bucket", "clientPrincipals", "kubeconfig", "network"], problemsOf: problemsOfVariant },
  { needs: ["variant", "catalog", "bucket", "databaseUrl"], problemsOf: problemsOfCatalog },
];

function problemsOfRay({ ray }: Settings): string[] {
  if (isAtLeast(ray.version, rayVersionMin)) return [];
  return [`ray.version: must be ${rayVersionMin.join(".")} or later, not ${ray.version}`];
}

/** Pairs of versions that are known not to work; requirements.md 1 and 9. */
function problemsOfOperator({ variant, operator, kubernetesVersion }: Settings): string[] {
  const problems: string[] = [];
  if (operator.source === "none") return problems;
  if (!isAtLeast(operator.version, operatorVersionMin)) {
    problems.push(`operator.version: must be ${operatorVersionMin.join(".")} or later, not ${operator.version}`);
    return problems;
  }
  const pairs = Object.entries(gkeOperatorPairs)
    .map(([kubernetes, its]) => `${kubernetes} with ${its}`)
    .join(", ");
  const isPair = gkeOperatorPairs[kubernetesVersion ?? ""] === operator.version.split(".").slice(0, 2).join(".");
  if (operator.source === "gke-addon") {
    if (variant !== "gke") problems.push("operator.source: gke-addon is there on gke only; use helm");
    else if (!isPair)
      problems.push(
        `operator.version: GKE's add-on comes in these pairs of kubernetesVersion and operator: ${pairs}; ` +
          `this stack asks for ${kubernetesVersion ?? "no certain version"} with ${operator.version}. Use source: helm for others`,
      );
  } else if (variant === "gke" && !isPair && !isAtLeast(operator.version, selfDeployedAnywhere))
    problems.push(
      `operator.version: on gke it must be ${selfDeployedAnywhere.join(".")} or later, or one of the pairs ${pairs}`,
    );
  return problems;
}

/** Settings that a variant needs, or has no use for. */
function problemsOfVariant(settings: Settings): string[] {
  const { variant, bucket, clientPrincipals, kubeconfig, network } = settings;
  const problems: string[] = [];
  const schemes = { gke: "gs://", eks: "s3://" } as const;
  if (variant === "existing") {
    if (bucket === undefined)
      problems.push("bucket: is required on an existing cluster: s3://..., gs://... or file:///...");
    if (
      kubeconfig !== undefined &&
      !kubeconfig.includes("\n") &&
      !kubeconfig.startsWith("{") &&
      !existsSync(resolve(kubeconfig))
    )
      problems.push("kubeconfig: is neither a kubeconfig nor the path of a file");
    for (const [index, principal] of clientPrincipals.entries())
      if (!/^(user|group):\S+$/.test(principal))
        problems.push(`clientPrincipals.${index}: must be user:NAME or group:NAME of the cluster`);
    return problems;
  }
  if (bucket !== undefined && !bucket.startsWith(schemes[variant]))
    problems.push(`bucket: must be ${schemes[variant]}... on ${variant}`);
  if (kubeconfig !== undefined) problems.push(`kubeconfig: has no meaning on ${variant}, which makes its own cluster`);
  if (!network.publicEndpoint && network.authorizedNetworks.length > 0 && variant === "eks")
    problems.push("network.authorizedNetworks: has no meaning without network.publicEndpoint");
  const [pattern, example] =
    variant === "eks"
      ? [/^arn:aws[-a-z]*:iam::\d{12}:(root|(user|role)\/\S+)$/, "arn:aws:iam::123456789012:role/NAME"]
      : [/^(user|group|serviceAccount|principal|principalSet):\S+$/, "user:alice@example.com"];
  for (const [index, principal] of clientPrincipals.entries())
    if (!pattern.test(principal)) problems.push(`clientPrincipals.${index}: must be like ${example}`);
  if (variant === "eks" && clientPrincipals.length === 0)
    problems.push(`clientPrincipals: name at least one who may assume the client role, e.g. ${example}`);
  return problems;
}

function problemsOfCatalog({ variant, catalog, bucket, databaseUrl }: Settings): string[] {
  if (!catalog.enabled) return [];
  const problems: string[] = [];
  const { database, image, replicas, litestream, ingress, oidc, volumeClaim } = catalog;
  if (variant === "existing" && image === undefined)
    problems.push("catalog.image: is required on an existing cluster; docs/infra.md tells how to build it");
  if (database === "postgres" && variant === "existing")
    problems.push("catalog.database: the stack makes no database on an existing cluster; use url with databaseUrl");
  if ((database === "url") !== (databaseUrl !== undefined))
    problems.push(
      "databaseUrl: goes with catalog.database url: pulumi config set --secret tiltyard:databaseUrl postgres://...",
    );
  if (database === "sqlite" && (replicas ?? 1) > 1)
    problems.push("catalog.replicas: SQLite has one writer; use catalog.database postgres or url for several replicas");
  if (litestream && database !== "sqlite") problems.push("catalog.litestream: goes with catalog.database sqlite");
  if (litestream && bucket?.startsWith("file:")) problems.push("catalog.litestream: needs a bucket in an object store");
  if (ingress !== undefined && oidc === undefined)
    problems.push("catalog.ingress: a catalog that is reached from outside needs catalog.oidc, not development tokens");
  if (catalog.vendCredentials && variant === "existing")
    problems.push(
      "catalog.vendCredentials: the stack makes no role on an existing cluster; put TILTYARD_VEND_CREDENTIALS, and for " +
        "S3 TILTYARD_VEND_S3_ROLE, into the secret of catalog.environmentSecret",
    );
  if (bucket?.startsWith("file:") && volumeClaim === undefined)
    problems.push(
      "catalog.volumeClaim: is required with a file: bucket: the claim of a volume that all nodes can mount",
    );
  if (volumeClaim !== undefined && !bucket?.startsWith("file:"))
    problems.push("catalog.volumeClaim: goes with a file: bucket");
  return problems;
}
