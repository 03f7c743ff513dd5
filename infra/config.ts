import { existsSync } from "node:fs";
import { resolve } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { z } from "zod";
import {
  defaultPools,
  LabelKeys,
  labelValue,
  type NodePool,
  NodePools,
  type NodeRole,
  resolvePools,
} from "./node-pools.ts";
import { charts, gkeOperatorPairs, isAtLeast, minimum, selfDeployedAnywhere, versions } from "./versions.ts";

const projectName = "tiltyard";

const dnsLabel = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "must be lower-case letters, digits and dashes, 63 at most");
const labelDomain = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\.[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, "must be a domain, e.g. ray.example.com");
const version = z.string().regex(/^\d+\.\d+(\.\d+)?$/, "must be a version such as 1.5.1");
const minorVersion = z.string().regex(/^\d+\.\d+$/, "must be a minor version such as 1.35");
const cidr = z.cidrv4("must be a range of addresses such as 10.0.0.0/16");
const quantity = z.string().regex(/^\d+(\.\d+)?(m|[KMGT]i?)?$/, "must be a Kubernetes quantity such as 500m or 2Gi");
const bucketUri = z
  .string()
  .regex(
    /^(s3|gs):\/\/[a-z0-9][-a-z0-9._]+(\/[^\s*?[\]${}]*)?$|^file:\/\/\/\S+$/,
    "must be s3://..., gs://... or file:///...",
  )
  .transform((uri) => uri.replace(/\/+$/, ""));

const Operator = z.discriminatedUnion("source", [
  z.strictObject({
    source: z.literal("helm"),
    version: version.default(versions.kuberayOperator),
    chart: z.string().default(charts.kuberayOperator.chart),
    repository: z.string().default(charts.kuberayOperator.repository),
  }),
  z.strictObject({ source: z.literal("gke-addon"), version: minorVersion }),
  z.strictObject({ source: z.literal("none") }),
]);
export type Operator = z.infer<typeof Operator>;

const Resources = z.strictObject({ cpu: quantity.default("500m"), memory: quantity.default("512Mi") });

const Catalog = z.strictObject({
  enabled: z.boolean().default(true),
  /** Built from this checkout and pushed to the cloud's registry when absent. */
  image: z.string().optional(),
  database: z.enum(["sqlite", "postgres", "url"], "must be sqlite, postgres, or url").default("sqlite"),
  /** PostgreSQL only: SQLite has one writer. */
  replicas: z.int().positive().optional(),
  volumeSize: quantity.default("20Gi"),
  /** SQLite only: a copy of every change in the bucket, at most seconds behind. */
  litestream: z.boolean().default(false),
  resources: Resources.prefault({}),
  oidc: z.strictObject({ issuer: z.url(), audience: z.string(), jwksUrl: z.url().optional() }).optional(),
  /** Requests a second for one principal. */
  rateLimit: z.int().positive().optional(),
  /** Namespaces besides the stack's own whose pods may call the catalog. */
  allowedNamespaces: z.array(dnsLabel).default([]),
  ingress: z
    .strictObject({
      host: z.string(),
      className: z.string(),
      /** A Kubernetes secret of the type tls in the namespace; cert-manager makes it when asked to by an annotation. */
      tlsSecret: dnsLabel,
      annotations: z.record(z.string(), z.string()).default({}),
    })
    .optional(),
  /** Also a setting of its own because the Prometheus operator has to be there. */
  serviceMonitor: z.boolean().default(false),
  /** A secret in the namespace whose keys are environment variables, for object stores without workload identity. */
  environmentSecret: dnsLabel.optional(),
  /** `file:` buckets only: the claim of a volume that all nodes can mount, mounted at the bucket's path. */
  volumeClaim: dnsLabel.optional(),
  /** Ports besides 443 that the catalog may call, e.g. of an object store inside the network. */
  egressPorts: z.array(z.int().positive().max(65_535)).default([]),
});
export type CatalogSettings = z.infer<typeof Catalog>;

const Network = z.strictObject({
  /** Addresses of nodes; on EKS also of pods. */
  cidr: cidr.default("10.40.0.0/16"),
  /** GKE only. */
  podCidr: cidr.default("10.44.0.0/14"),
  serviceCidr: cidr.default("10.48.0.0/20"),
  controlPlaneCidr: cidr.default("10.49.0.0/28"),
  /** Whether the Kubernetes API has an address that the internet can reach. */
  publicEndpoint: z.boolean().default(true),
  /** From where the public endpoint may be called; empty is from everywhere. */
  authorizedNetworks: z.array(cidr).default([]),
  /** EKS only: one gateway is cheaper, one a zone survives the loss of a zone. */
  natGateways: z.enum(["single", "perZone"]).default("single"),
});

/** The settings that are structures or not text: they are written as YAML and arrive as JSON. */
const structured = {
  deletionProtection: z.boolean().default(true),
  labelKeys: LabelKeys.prefault({}),
  operator: Operator.prefault({ source: "helm" }),
  ray: z.strictObject({ version: version.default(versions.ray), image: z.string().optional() }).prefault({}),
  nodePools: NodePools.optional(),
  clientPrincipals: z.array(z.string()).default([]),
  catalog: Catalog.prefault({}),
  network: Network.prefault({}),
  serviceAccountAnnotations: z.record(z.string(), z.string()).default({}),
  deleteNamespace: z.boolean().default(false),
};

/** The settings that are text. */
const textual = {
  variant: z.enum(["existing", "gke", "eks"], "must be existing, gke or eks"),
  kubeconfig: z.string().optional(),
  context: z.string().optional(),
  clusterName: dnsLabel.default("lancedb"),
  namespace: dnsLabel.default("lancedb"),
  serviceAccount: dnsLabel.default("geneva-service-account"),
  clientRole: z.string().default("geneva-client-role"),
  labelDomain: labelDomain.default("geneva.lancedb.com"),
  kubernetesVersion: minorVersion.optional(),
  bucket: bucketUri.optional(),
  databaseUrl: z
    .string()
    .regex(/^postgres(ql)?:\/\/\S+$/, "must be postgres://USER:PASSWORD@HOST/DATABASE")
    .optional(),
};

const Settings = z.object({ ...textual, ...structured });
type Settings = z.infer<typeof Settings>;

/** The settings of a stack, checked as a whole; docs/infra.md lists them. */
export interface StackConfig extends Omit<Settings, "nodePools" | "ray"> {
  readonly ray: { readonly version: string; readonly image: string };
  /** Empty on a cluster that is there already. */
  readonly nodePools: readonly NodePool[];
  /** Of the cloud, from its provider's own settings. */
  readonly region: string;
  readonly project: string;
}

/** Settings that are not valid. The message lists every problem with its path. */
export class StackConfigError extends Error {
  override readonly name = "StackConfigError";
}

/** The node label of a role, as a selector. */
export function nodeSelector(config: StackConfig, role: NodeRole): Record<string, string> {
  return { [`${config.labelDomain}/${config.labelKeys[role]}`]: labelValue };
}

/** @throws StackConfigError */
export function readStackConfig(): StackConfig {
  return parseStackConfig(pulumi.runtime.allConfig());
}

/**
 * @param all Pulumi's settings by their full names: `tiltyard:variant`, `gcp:project`, ...
 * @throws StackConfigError
 */
export function parseStackConfig(all: Readonly<Record<string, string>>): StackConfig {
  const problems: string[] = [];
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(all)) {
    const [project, key = ""] = name.split(":");
    if (project !== projectName || value === "") continue;
    if (key in textual) given[key] = value;
    else if (!(key in structured)) problems.push(`${key}: is not a setting`);
    else
      try {
        given[key] = JSON.parse(value);
      } catch {
        problems.push(`${key}: is not what is expected here; docs/infra.md shows how it is written`);
      }
  }
  const parsed = Settings.safeParse(given);
  for (const { path, message } of parsed.error?.issues ?? [])
    problems.push(`${path.join(".")}: ${given[String(path[0])] === undefined ? "is required; it " : ""}${message}`);
  if (!parsed.success) throw invalid(problems);

  const settings = parsed.data;
  const { variant } = settings;
  const region = all[variant === "gke" ? "gcp:region" : "aws:region"] ?? "";
  const project = all["gcp:project"] ?? "";
  if (variant === "gke" && project === "") problems.push("gcp:project: is required: pulumi config set gcp:project ID");
  if (variant !== "existing" && region === "") {
    const cloud = variant === "gke" ? "gcp" : "aws";
    problems.push(`${cloud}:region: is required: pulumi config set ${cloud}:region REGION`);
  }

  let nodePools: readonly NodePool[] = [];
  if (variant !== "existing") {
    const resolved = resolvePools(settings.nodePools ?? defaultPools(variant), variant);
    nodePools = resolved.pools;
    problems.push(...resolved.problems);
  } else if (settings.nodePools !== undefined)
    problems.push("nodePools: a stack on an existing cluster makes no nodes; label those that are there");

  problems.push(...problemsOfVersions(settings), ...problemsOfVariant(settings), ...problemsOfCatalog(settings));
  if (problems.length > 0) throw invalid(problems);
  const { version: rayVersion, image = `rayproject/ray:${rayVersion}-py312` } = settings.ray;
  return { ...settings, ray: { version: rayVersion, image }, nodePools, region, project };
}

function invalid(problems: readonly string[]): StackConfigError {
  return new StackConfigError(`The settings of this stack are not valid:\n  ${problems.join("\n  ")}`);
}

/** Pairs of versions that are known not to work; requirements.md 1 and 9. */
function problemsOfVersions({ variant, operator, ray, kubernetesVersion }: Settings): string[] {
  const problems: string[] = [];
  if (!isAtLeast(ray.version, minimum.ray))
    problems.push(`ray.version: must be ${minimum.ray.join(".")} or later, not ${ray.version}`);
  if (operator.source === "none") return problems;
  if (!isAtLeast(operator.version, minimum.operator)) {
    problems.push(`operator.version: must be ${minimum.operator.join(".")} or later, not ${operator.version}`);
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
  if (bucket?.startsWith("file:") && volumeClaim === undefined)
    problems.push(
      "catalog.volumeClaim: is required with a file: bucket: the claim of a volume that all nodes can mount",
    );
  if (volumeClaim !== undefined && !bucket?.startsWith("file:"))
    problems.push("catalog.volumeClaim: goes with a file: bucket");
  return problems;
}
