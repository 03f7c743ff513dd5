import { platformDefaults } from "@tiltyard/platform";
import { z } from "zod";
import { architectures } from "../machines.ts";
import { LabelKeys, NodePools } from "../node-pools.ts";
import { charts, versions } from "../versions.ts";
import {
  backedUp,
  CatalogOnEks,
  CatalogOnExisting,
  CatalogOnExistingEks,
  CatalogOnExistingGke,
  CatalogOnGke,
} from "./catalog-settings.ts";
import { ChartsEverywhere, ChartsOnEks } from "./chart-values.ts";
import { Monitoring, MonitoringOnGke } from "./monitoring-settings.ts";
import { EksNetwork, GkeNetwork } from "./network-settings.ts";
import { Runner, RunnerOnCloud } from "./runner-settings.ts";
import {
  annotationMap,
  bucketOf,
  dnsLabel,
  eksClusterName,
  imageName,
  isMap,
  kubernetesVersion,
  labelDomain,
  minorVersion,
  ownNamespace,
  ownServiceAccount,
  version,
} from "./setting-types.ts";
import { StorageOnEks, StorageOnGke } from "./storage-settings.ts";
import { Kueue, Quota, Teams, TeamsOnExisting } from "./team-settings.ts";

export const variants = ["existing", "existing-gke", "existing-eks", "gke", "eks"] as const;
export type Variant = (typeof variants)[number];

const Operator = z.discriminatedUnion(
  "source",
  [
    z.strictObject({
      source: z.literal("helm"),
      version: version.default(versions.kuberayOperator),
      chart: z.string().default(charts.kuberayOperator.chart),
      repository: z.string().default(charts.kuberayOperator.repository),
      /** True lets the stack create and upgrade KubeRay's resource definitions. Otherwise Helm creates them once. */
      crds: z.boolean().default(false),
    }),
    /** The version of the add-on, which GKE derives from the version of Kubernetes. */
    z.strictObject({ source: z.literal("gke-addon"), version: minorVersion.optional() }),
    z.strictObject({
      source: z.literal("none"),
      /** The namespace of the existing operator, which must be able to call Ray's dashboards. */
      namespace: dnsLabel.optional(),
    }),
  ],
  "must be {source: helm}, {source: gke-addon} or {source: none}",
);
export type OperatorSettings = z.output<typeof Operator>;
/** The default operator. */
export const operatorDefaults: OperatorSettings = Operator.parse({ source: "helm" });
/** The operator, with `source: helm` as the default. */
const OperatorOrItsVersion = z.preprocess((given) => (isMap(given) ? { source: "helm", ...given } : given), Operator);

const pythonPackage = z
  .string()
  .regex(
    /^[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?==[\w.!+-]+$/,
    "must be a package with its version, such as geneva==0.17.0",
  );

const Ray = z.strictObject({
  /** The authentication of Ray clusters; `token` when absent, if the versions of Ray and KubeRay support it. */
  auth: z.enum(["token", "none"], "must be token or none").optional(),
  version: version.default(platformDefaults.rayVersion),
  image: imageName.optional(),
  /** The image of workers with a GPU. */
  gpuImage: imageName.optional(),
  /** `vended`: Ray's pods have no right to the bucket, and use the credentials that the catalog hands out for a table. */
  bucketAccess: z.enum(["direct", "vended"], "must be direct or vended").default("direct"),
  /** True lets a stack with a registry build Dockerfile.ray, which jobs need, unless an image is named. */
  build: z.boolean().default(true),
  /** The additional Python packages of the built images. */
  packages: z.array(pythonPackage).default([]),
  /**
   * The namespaces whose pods may connect to Ray's, such as that of Prometheus. Access to a head means code execution
   * on it.
   */
  allowedNamespaces: z.array(dnsLabel).default([]),
});

const time = z.iso.datetime("must be a time such as 2026-01-03T00:00:00Z");

/** The minimum length of a maintenance window that GKE accepts. */
const windowMsMin = 4 * 60 * 60_000;

/** The maintenance window; by default all of Saturday and Sunday. */
const Maintenance = z
  .strictObject({
    start: time.default("2026-01-03T00:00:00Z"),
    end: time.default("2026-01-04T00:00:00Z"),
    recurrence: z
      .string()
      .regex(/^FREQ=(DAILY|WEEKLY)/, "must be a rule of RFC 5545 such as FREQ=WEEKLY;BYDAY=SA,SU")
      .default("FREQ=WEEKLY;BYDAY=SA,SU"),
  })
  .refine(({ start, end }) => Date.parse(end) - Date.parse(start) >= windowMsMin, {
    path: ["end"],
    error: "must be four hours after start, or later",
  });

const everywhere = {
  clusterName: dnsLabel.default(platformDefaults.clusterName),
  namespace: ownNamespace.default(platformDefaults.namespace),
  serviceAccount: ownServiceAccount.default(platformDefaults.serviceAccount),
  labelDomain: labelDomain.default(platformDefaults.labelDomain),
  labelKeys: LabelKeys.prefault({}),
  operator: OperatorOrItsVersion.prefault({}),
  ray: Ray.prefault({}),
  quota: Quota.optional(),
  kueue: Kueue.optional(),
  /** Preserves Ray's logs after the deletion of a Ray cluster, in the logs of the cloud or of the cluster. */
  rayLogs: z.boolean().default(false),
  runner: Runner.prefault({}),
  clientPrincipals: z.array(z.string()).default([]),
};

/** The settings of a cluster outside the stack. */
const existing = {
  kubeconfig: z.string().optional(),
  context: z.string().optional(),
  deleteNamespace: z.boolean().default(false),
  /** The architecture of its nodes. */
  architecture: z.enum(architectures, `must be ${architectures.join(" or ")}`).default("amd64"),
};

const onClouds = {
  kubernetesVersion: kubernetesVersion.optional(),
  nodePools: NodePools.optional(),
  adminPrincipals: z.array(z.string()).default([]),
  runner: RunnerOnCloud.prefault({}),
};

/** The cache of public images in the cloud's registry. On AWS, Docker Hub requires an account for it. */
const imageCacheOnGke = { imageCache: z.boolean().default(false) };
const imageCacheOnEks = {
  imageCache: z
    .strictObject(
      {
        /** A secret of the Secrets Manager: `{"username": ..., "accessToken": ...}`. */
        dockerHubCredentials: z
          .string()
          .regex(
            /^arn:aws[-a-z]*:secretsmanager:[^:]+:\d{12}:secret:ecr-pullthroughcache\/\S+$/,
            "must be the ARN of a secret whose name begins with ecr-pullthroughcache/",
          ),
      },
      "must be {dockerHubCredentials: ARN}",
    )
    .optional(),
};

/** The settings of stacks that build images and push them to a registry of the cloud. */
const images = {
  /** Digests of Ray's images by their names: `rayproject/ray:2.60.0-py312`. The tag counts where none is given. */
  imageDigests: z
    .record(z.string(), z.string().regex(/^sha256:[0-9a-f]{64}$/, "must be sha256: and 64 hexadecimal digits"))
    .default({}),
  /** `docker`: Docker signs in by itself, such as with a credential helper, whose tokens do not expire during a long build. */
  registrySignIn: z.enum(["token", "docker"], "must be token or docker").default("token"),
};

/** The release channel of GKE. Other channels than EXTENDED end with the standard support of a version. */
const releaseChannels = ["RAPID", "REGULAR", "STABLE", "EXTENDED"] as const;
const supportTypes = ["STANDARD", "EXTENDED"] as const;

/** The settings of each variant. Settings that a variant would ignore are rejected. */
export const settingsOfVariant = {
  existing: {
    ...everywhere,
    chartValues: ChartsEverywhere,
    ...existing,
    monitoring: Monitoring,
    teams: TeamsOnExisting,
    bucket: bucketOf("s3", "gs", "file"),
    serviceAccountAnnotations: annotationMap.default({}),
    catalog: CatalogOnExisting.prefault({}),
  },
  "existing-gke": {
    ...everywhere,
    chartValues: ChartsEverywhere,
    teams: Teams,
    ...existing,
    ...StorageOnGke,
    monitoring: MonitoringOnGke,
    ...imageCacheOnGke,
    ...images,
    /** The region or the zone of the cluster; `gcp:region` when absent. */
    location: z.string().optional(),
    bucket: bucketOf("gs").optional(),
    catalog: CatalogOnExistingGke.prefault({}),
  },
  "existing-eks": {
    ...everywhere,
    clusterName: eksClusterName.default(platformDefaults.clusterName),
    chartValues: ChartsEverywhere,
    teams: Teams,
    ...imageCacheOnEks,
    ...images,
    ...existing,
    ...StorageOnEks,
    monitoring: Monitoring,
    bucket: bucketOf("s3").optional(),
    catalog: CatalogOnExistingEks.prefault({}),
  },
  gke: {
    ...everywhere,
    chartValues: ChartsEverywhere,
    teams: Teams,
    ...imageCacheOnGke,
    ...images,
    ...onClouds,
    ...StorageOnGke,
    monitoring: MonitoringOnGke,
    bucket: bucketOf("gs").optional(),
    releaseChannel: z.enum(releaseChannels, `must be one of ${releaseChannels.join(", ")}`).default("REGULAR"),
    network: GkeNetwork.prefault({}),
    maintenance: Maintenance.prefault({}),
    catalog: backedUp(CatalogOnGke).prefault({}),
  },
  eks: {
    ...everywhere,
    chartValues: ChartsOnEks,
    teams: Teams,
    ...imageCacheOnEks,
    ...images,
    ...onClouds,
    ...StorageOnEks,
    monitoring: Monitoring,
    bucket: bucketOf("s3").optional(),
    /** The name of the client role, which must be unique in the account. By default, it differs between clusters. */
    clientRole: z
      .string()
      .regex(/^[\w+=,.@-]+$/, "must be letters, digits and any of + = , . @ - _")
      .optional(),
    /** With `cluster` the client role administers the cluster, as Geneva's clients expect; with `namespace` it creates Ray clusters. */
    clientAccess: z.enum(["cluster", "namespace"], "must be cluster or namespace").default("cluster"),
    /** `STANDARD` upgrades the control plane at the end of standard support; `EXTENDED` keeps it for a surcharge of AWS. */
    supportType: z.enum(supportTypes, `must be ${supportTypes.join(" or ")}`).default("STANDARD"),
    /** The release of the nodes' image, or `newest` at each `pulumi up`. When absent, groups keep their first release. */
    nodeRelease: z
      .string()
      .regex(
        /^(newest|\d+\.\d+\.\d+-\d{8})$/,
        "must be newest, or a release of the EKS-optimized image such as 1.36.1-20261118",
      )
      .optional(),
    network: EksNetwork.prefault({}),
    catalog: backedUp(CatalogOnEks).prefault({}),
  },
} as const satisfies Record<Variant, z.ZodRawShape>;

export type SettingsOf<V extends Variant> = { readonly variant: V } & z.output<
  z.ZodObject<(typeof settingsOfVariant)[V]>
>;
export type Settings = { [V in Variant]: SettingsOf<V> }[Variant];
export type SettingName = { [V in Variant]: Exclude<keyof SettingsOf<V>, "variant"> }[Variant];

/** The settings that a rule may read, as far as the variant has them. */
export type Reading<Name extends SettingName> = {
  [V in Variant]: { readonly variant: V } & Pick<SettingsOf<V>, Name & keyof SettingsOf<V>>;
}[Variant];

/** Reports whether a setting is text. All others are structures, which are written as YAML and arrive as JSON. */
export function isText(schema: z.core.$ZodType): boolean {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return isText(schema.unwrap());
  if (schema instanceof z.ZodPipe) return isText(schema.in);
  return schema instanceof z.ZodString || schema instanceof z.ZodEnum;
}
