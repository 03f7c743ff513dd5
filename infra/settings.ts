import { platformDefaults } from "@tiltyard/protocol";
import { z } from "zod";
import { LabelKeys, NodePools } from "./node-pools.ts";
import { charts, versions } from "./versions.ts";

const dnsLabel = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "must be lower-case letters, digits and dashes, 63 at most");
const labelDomain = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\.[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, "must be a domain, e.g. ray.example.com");
/** YAML reads 1.30 as the number 1.3. */
const versionText = z.string("must be in quotes, or it is read as a number");
const version = versionText.regex(/^\d+\.\d+(\.\d+)?$/, "must be a version such as 1.6.2");
const minorVersion = versionText.regex(/^\d+\.\d+$/, "must be a minor version such as 1.35");
/** No version before it has been run for years: what is lower lost its last digit as a number. */
const kubernetesMinorMin = 20;
const kubernetesVersion = minorVersion.refine(
  (text) => Number(text.split(".")[1]) >= kubernetesMinorMin,
  'must be in quotes, as "1.30" is, or it is read as a number',
);
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
/** From its chart, unless something else is said. */
const OperatorOrItsVersion = z.preprocess(
  (given) => (typeof given === "object" ? { source: "helm", ...given } : given),
  Operator,
);

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
  /** Whether the catalog hands out credentials for tables, each held to one of them. */
  vendCredentials: z.boolean().default(false),
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
export const structured = {
  deletionProtection: z.boolean().default(true),
  labelKeys: LabelKeys.prefault({}),
  operator: OperatorOrItsVersion.prefault({}),
  ray: z
    .strictObject({ version: version.default(platformDefaults.rayVersion), image: z.string().optional() })
    .prefault({}),
  nodePools: NodePools.optional(),
  clientPrincipals: z.array(z.string()).default([]),
  catalog: Catalog.prefault({}),
  network: Network.prefault({}),
  serviceAccountAnnotations: z.record(z.string(), z.string()).default({}),
  deleteNamespace: z.boolean().default(false),
};

/** The settings that are text. */
export const textual = {
  variant: z.enum(["existing", "gke", "eks"], "must be existing, gke or eks"),
  kubeconfig: z.string().optional(),
  context: z.string().optional(),
  clusterName: dnsLabel.default("lancedb"),
  namespace: dnsLabel.default(platformDefaults.namespace),
  serviceAccount: dnsLabel.default(platformDefaults.serviceAccount),
  clientRole: z.string().default("geneva-client-role"),
  labelDomain: labelDomain.default(platformDefaults.labelDomain),
  kubernetesVersion: kubernetesVersion.optional(),
  bucket: bucketUri.optional(),
  databaseUrl: z
    .string()
    .regex(/^postgres(ql)?:\/\/\S+$/, "must be postgres://USER:PASSWORD@HOST/DATABASE")
    .optional(),
};

export const Settings = z.object({ ...textual, ...structured });
export type Settings = z.infer<typeof Settings>;
