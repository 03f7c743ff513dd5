import { platformDefaults } from "@tiltyard/protocol";
import { z } from "zod";
import { CatalogOnEks, CatalogOnExisting, CatalogOnGke } from "./catalog-settings.ts";
import { LabelKeys, NodePools } from "./node-pools.ts";
import { bucketOf, cidr, dnsLabel, kubernetesVersion, labelDomain, minorVersion, version } from "./setting-types.ts";
import { charts, versions } from "./versions.ts";

export const variants = ["existing", "gke", "eks"] as const;
export type Variant = (typeof variants)[number];

const Operator = z.discriminatedUnion("source", [
  z.strictObject({
    source: z.literal("helm"),
    version: version.default(versions.kuberayOperator),
    chart: z.string().default(charts.kuberayOperator.chart),
    repository: z.string().default(charts.kuberayOperator.repository),
  }),
  z.strictObject({ source: z.literal("gke-addon"), version: minorVersion }),
  z.strictObject({
    source: z.literal("none"),
    /** Where the operator that is there runs; it has to reach Ray's dashboards. */
    namespace: dnsLabel.optional(),
  }),
]);
export type OperatorSettings = z.output<typeof Operator>;
/** From its chart, unless something else is said. */
const OperatorOrItsVersion = z.preprocess(
  (given) => (typeof given === "object" ? { source: "helm", ...given } : given),
  Operator,
);

const Ray = z.strictObject({
  version: version.default(platformDefaults.rayVersion),
  image: z.string().optional(),
  /** Of workers with a GPU. */
  gpuImage: z.string().optional(),
  /** Namespaces whose pods may reach Ray's, such as that of Prometheus. Whoever reaches a head runs code on it. */
  allowedNamespaces: z.array(dnsLabel).default([]),
});

const time = z.iso.datetime("must be a time such as 2026-01-03T00:00:00Z");

/** The whole of Saturday and of Sunday. */
const Maintenance = z.strictObject({
  start: time.default("2026-01-03T00:00:00Z"),
  end: time.default("2026-01-04T00:00:00Z"),
  recurrence: z
    .string()
    .regex(/^FREQ=(DAILY|WEEKLY)/, "must be a rule of RFC 5545 such as FREQ=WEEKLY;BYDAY=SA,SU")
    .default("FREQ=WEEKLY;BYDAY=SA,SU"),
});

const network = {
  /** Addresses of nodes; on EKS also of pods. */
  cidr: cidr.default("10.40.0.0/16"),
  /** From where the public endpoint may be called; empty is from everywhere. */
  authorizedNetworks: z.array(cidr).default([]),
};
const GkeNetwork = z.strictObject({
  ...network,
  podCidr: cidr.default("10.44.0.0/14"),
  serviceCidr: cidr.default("10.48.0.0/20"),
  controlPlaneCidr: cidr.default("10.49.0.0/28"),
  /** Whether the Kubernetes API has an address that the internet can reach; without it there is Google's DNS endpoint. */
  publicEndpoint: z.boolean().default(true),
});
const EksNetwork = z.strictObject({
  ...network,
  publicEndpoint: z
    .literal(
      true,
      "must be true: the stack makes its network itself, so that nobody is in it yet who could reach a private endpoint",
    )
    .default(true),
  /** By default the first three that EKS can be in. Another set is another network, and so another cluster. */
  zones: z.array(z.string()).min(2, "must name two zones at least").max(7, "must name seven zones at most").optional(),
  /** One gateway is cheaper, one a zone survives the loss of a zone. */
  natGateways: z.enum(["single", "perZone"]).default("single"),
});

const everywhere = {
  clusterName: dnsLabel.default(platformDefaults.clusterName),
  namespace: dnsLabel.default(platformDefaults.namespace),
  serviceAccount: dnsLabel.default(platformDefaults.serviceAccount),
  labelDomain: labelDomain.default(platformDefaults.labelDomain),
  labelKeys: LabelKeys.prefault({}),
  operator: OperatorOrItsVersion.prefault({}),
  ray: Ray.prefault({}),
  clientPrincipals: z.array(z.string()).default([]),
};

const onClouds = {
  kubernetesVersion: kubernetesVersion.optional(),
  nodePools: NodePools.optional(),
  adminPrincipals: z.array(z.string()).default([]),
  deletionProtection: z.boolean().default(true),
  keepData: z.boolean().default(false),
};

/** What each variant can be told. What it would ignore cannot be written. */
export const settingsOfVariant = {
  existing: {
    ...everywhere,
    kubeconfig: z.string().optional(),
    context: z.string().optional(),
    bucket: bucketOf("s3", "gs", "file"),
    serviceAccountAnnotations: z.record(z.string(), z.string()).default({}),
    deleteNamespace: z.boolean().default(false),
    catalog: CatalogOnExisting.prefault({}),
  },
  gke: {
    ...everywhere,
    ...onClouds,
    bucket: bucketOf("gs").optional(),
    network: GkeNetwork.prefault({}),
    maintenance: Maintenance.prefault({}),
    catalog: CatalogOnGke.prefault({}),
  },
  eks: {
    ...everywhere,
    ...onClouds,
    bucket: bucketOf("s3").optional(),
    /** An account has one role of a name: stacks of other clusters have another one by default. */
    clientRole: z.string().optional(),
    network: EksNetwork.prefault({}),
    catalog: CatalogOnEks.prefault({}),
  },
} as const satisfies Record<Variant, z.ZodRawShape>;

export type SettingsOf<V extends Variant> = { readonly variant: V } & z.output<
  z.ZodObject<(typeof settingsOfVariant)[V]>
>;
export type Settings = SettingsOf<"existing"> | SettingsOf<"gke"> | SettingsOf<"eks">;

/** The settings that are text; all others are structures: they are written as YAML and arrive as JSON. */
export const textual: ReadonlySet<string> = new Set([
  ...["kubeconfig", "context", "clusterName", "namespace", "serviceAccount"],
  ...["clientRole", "labelDomain", "kubernetesVersion", "bucket"],
]);
