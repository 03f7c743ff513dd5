import { KubeConfig } from "@kubernetes/client-node";
import * as pulumi from "@pulumi/pulumi";
import { rayGpuImage, rayImage } from "@tiltyard/platform";
import { closest, ownValue, parsing } from "@tiltyard/protocol";
import { z } from "zod";
import type { BucketAccess } from "./cluster.ts";
import type { Architecture } from "./machines.ts";
import {
  architecturesOfRoles,
  defaultRayClusters,
  type NodePool,
  type NodeRole,
  ofEachRole,
  roleLabels,
  withArchitecture,
} from "./node-pools.ts";
import { supportNotice } from "./settings/kubernetes-support.ts";
import { clientRoleOf } from "./settings/name-rules.ts";
import type { RunnerSettings } from "./settings/runner-settings.ts";
import { hasNoField } from "./settings/setting-types.ts";
import {
  type Settings,
  type SettingsOf,
  settingsOfVariant,
  textual,
  type Variant,
  variants,
} from "./settings/settings.ts";
import {
  buildsRayImages,
  isKubeconfigText,
  poolsOf,
  readKubeconfig,
  rules,
  tokenHindrance,
} from "./settings/settings-rules.ts";
import { problemsOfRegion } from "./settings/storage-rules.ts";
import { type Team, teamNamespace } from "./settings/team-settings.ts";

const projectName = "tiltyard";
/** The text in the files of the stacks that users replace. */
const gap = "FILL-IN";

/** The values that are derived from the settings on every variant. */
interface WorkedOut {
  readonly teams: readonly Team[];
  /** The architecture of the nodes of each role. */
  readonly architectures: Readonly<Record<NodeRole, Architecture>>;
  /** The node selectors of pods by role. */
  readonly nodeSelectors: Readonly<Record<NodeRole, Readonly<Record<string, string>>>>;
  readonly ray: {
    readonly version: string;
    /** Reports whether Ray clusters require a token. */
    readonly auth: "token" | "none";
    readonly image: string;
    readonly gpuImage: string;
    readonly bucketAccess: BucketAccess;
    readonly allowedNamespaces: readonly string[];
    /** The content of the stack's own images, which replace those two; undefined if the stack builds none. */
    readonly build: { readonly packages: readonly string[]; readonly gpu: boolean } | undefined;
  };
}

/** The additional derived values on clouds. */
interface OnCloud extends WorkedOut, CloudLocation {
  readonly nodePools: readonly NodePool[];
}

type Config<V extends Variant, More> = Omit<SettingsOf<V>, keyof More | "catalog" | "runner"> & {
  readonly runner: RunnerSettings & { readonly enabled: boolean };
} & More & { readonly catalog: SettingsOf<V>[keyof SettingsOf<V> & "catalog"] & { readonly namespace: string } };
/** The values from the settings of the cloud's provider. */
interface CloudLocation {
  readonly region: string;
  /** The tags that the provider sets on its resources, for resources that others create. */
  readonly tags: Readonly<Record<string, string>>;
}
/** A program with the component of infra/provider.ts may learn the kubeconfig only during the deployment. */
interface WithKubeconfig {
  readonly kubeconfig?: string | pulumi.Output<string> | undefined;
}
export type ExistingConfig = Config<"existing", WorkedOut & WithKubeconfig>;
export type ExistingGkeConfig = Config<"existing-gke", WorkedOut & CloudLocation & { readonly project: string }>;
export type ExistingEksConfig = Config<"existing-eks", WorkedOut & CloudLocation>;
export type GkeConfig = Config<"gke", OnCloud & { readonly project: string }>;
export type EksConfig = Config<
  "eks",
  OnCloud & {
    readonly clientRole: string;
    /** The explicit credentials of the cloud's provider, which a kubeconfig must use too. */
    readonly credentials: { readonly profileName?: string; readonly roleArn?: string };
  }
>;

/** The validated settings of a stack. docs/reference/stack.md lists them. */
export type StackConfig = ExistingConfig | ExistingGkeConfig | ExistingEksConfig | GkeConfig | EksConfig;

/** An error that lists all invalid settings with their paths. Pulumi prints it without a stack trace. */
export class StackConfigError extends pulumi.RunError {}

/** Reads and validates the settings of the stack. @throws StackConfigError */
export function readStackConfig(): StackConfig {
  const today = new Date();
  const config = parseStackConfig(pulumi.runtime.allConfig(), today);
  // The language host sets this variable to the names of the settings that are stored as secrets.
  // biome-ignore lint/style/noProcessEnv: Pulumi's types do not have its own function for it.
  const secrets = secretNames.safeParse(jsonOf(process.env.PULUMI_CONFIG_SECRET_KEYS ?? "")).data;
  const plain = secrets === undefined ? [] : plainTextWarnings(config, secrets);
  for (const warning of [...warningsOf(config, today), ...plain]) pulumi.log.warn(warning);
  const notice = contextNotice(config);
  if (notice !== undefined) pulumi.log.info(notice);
  return config;
}

/** Returns a notice with the current context, which determines the cluster of a stack without the setting `context`. */
export function contextNotice(config: StackConfig): string | undefined {
  if (!("kubeconfig" in config) || config.context !== undefined) return undefined;
  const { kubeconfig } = config;
  if (kubeconfig !== undefined && typeof kubeconfig !== "string") return undefined;
  let contexts = new KubeConfig();
  try {
    if (kubeconfig === undefined) contexts.loadFromDefault();
    else contexts = readKubeconfig(kubeconfig);
  } catch {
    // The provider of Kubernetes reports a file that it cannot read.
    return undefined;
  }
  const server = contexts.getCurrentCluster()?.server ?? "no cluster";
  return `context: is not set; the stack uses the current context ${contexts.getCurrentContext()} (${server})`;
}

const secretNames = z.array(z.string());

/** Returns warnings about credentials that the file of the stack contains as plain text. */
export function plainTextWarnings(config: StackConfig, secretNames: readonly string[]): string[] {
  const { database } = config.catalog;
  const kubeconfig = "kubeconfig" in config ? config.kubeconfig : undefined;
  const plain = [
    ...(typeof database === "object" && URL.parse(database.url)?.password ? ["catalog.database.url"] : []),
    ...(typeof kubeconfig === "string" && isKubeconfigText(kubeconfig) ? ["kubeconfig"] : []),
  ].filter((path) => !secretNames.includes(`${projectName}:${path.split(".")[0]}`));
  return plain.map(
    (path) =>
      `${path}: is plain text in the file of the stack. Store it encrypted: pulumi config set --secret --path ` +
      `'${projectName}:${path}' VALUE`,
  );
}

/** Returns warnings about valid settings that should be changed soon. */
export function warningsOf(config: StackConfig, today: Date): string[] {
  if (!("nodePools" in config)) return config.variant === "existing" ? rayImageWarnings(config) : [];
  const notice = supportNotice(config, today);
  return [...(notice === undefined ? [] : [notice.message]), ...(isOpen(config.network) ? [openApi] : [])];
}

/** A stack on an existing cluster builds no image of Ray, and Ray's own has no dependencies of jobs. */
function rayImageWarnings({ ray, architectures, catalog, runner }: ExistingConfig): string[] {
  const runsJobs = catalog.enabled && runner.enabled;
  return runsJobs && ray.image === rayImage(ray.version, architectures.head)
    ? ["ray.image: is not set, and jobs of the catalog cannot run in Ray's own image. Build Dockerfile.ray"]
    : [];
}

const openApi =
  "network.authorizedNetworks: the Kubernetes API accepts connections from every address (0.0.0.0/0). List the " +
  "networks of administrators and clients";

function isOpen({ publicEndpoint, authorizedNetworks }: (GkeConfig | EksConfig)["network"]): boolean {
  return publicEndpoint && (authorizedNetworks.length === 0 || authorizedNetworks.some((each) => each.endsWith("/0")));
}

type All = Readonly<Record<string, string>>;

/**
 * Validates settings.
 *
 * @param all Pulumi's settings by their full names: `tiltyard:variant`, `gcp:project`, ...
 * @param today The date for checks of the end of support.
 * @throws StackConfigError
 */
export function parseStackConfig(all: All, today: Date): StackConfig {
  const gaps = Object.entries(all).flatMap(([name, text]) =>
    gapsIn(text.includes(gap) ? jsonOf(text) : "", name.replace(`${projectName}:`, "")),
  );
  if (gaps.length > 0) throw notValid(gaps.map((path) => `${path}: replace ${gap} with your value`));
  const variant = variantIn(all);
  const problems: string[] = [];
  const given = settingsIn(all, variant, problems);
  const settings: Record<string, unknown> = { variant };
  for (const [key, schema] of Object.entries(settingsOfVariant[variant])) {
    const parsed = schema.safeParse(ownValue(given, key), parsingSettings);
    if (parsed.success) settings[key] = parsed.data;
    const messages = firstMessages(key, parsed.error?.issues ?? []);
    for (const [path, message] of Object.entries(messages))
      problems.push(`${path}: ${ownValue(given, key) === undefined ? "is required; it " : ""}${message}`);
  }
  // Problems of individual settings are reported first, because rules about several settings would produce follow-up
  // errors.
  for (const { needs, problemsOf } of rules)
    if (needs.every((key) => key in settings || !Object.hasOwn(settingsOfVariant[variant], key)))
      problems.push(...problemsOf(settings as Settings, today));
  const cloud = cloudIn(all, variant, problems);
  problems.push(...problemsOfRegion(settings as Settings, cloud.region));
  if (problems.length > 0) throw notValid(problems);
  return workOut(settings as Settings, cloud);
}

/**
 * Validates settings that are values, such as the arguments of a component.
 *
 * @param ofProviders Pulumi's settings of the clouds' providers by their full names.
 * @throws StackConfigError
 */
export function configOfValues<V extends Variant>(
  variant: V,
  settings: Readonly<Record<string, unknown>>,
  ofProviders: All = {},
): Extract<StackConfig, { readonly variant: V }> {
  const texts = Object.entries(settings)
    .filter(([, value]) => value !== undefined)
    .map(
      ([key, value]) => [`${projectName}:${key}`, typeof value === "string" ? value : JSON.stringify(value)] as const,
    );
  const all = { ...ofProviders, ...Object.fromEntries(texts), [`${projectName}:variant`]: variant };
  const config = parseStackConfig(all, new Date());
  if (!isOf(config, variant)) throw new Error(`the variant is ${config.variant}`);
  return config;
}

function isOf<V extends Variant>(
  config: StackConfig,
  variant: V,
): config is Extract<StackConfig, { readonly variant: V }> {
  return config.variant === variant;
}

/** Returns the paths of the values that users replace, such as `catalog.image`. */
function gapsIn(value: unknown, path: string): string[] {
  if (typeof value === "string") return value.includes(gap) ? [path] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => gapsIn(each, `${path}.${key}`));
}

/** The context in which settings are parsed: an unknown field of a structure gets the name that it most likely means. */
const parsingSettings: z.core.ParseContext<z.core.$ZodIssue> = {
  error: (issue) => {
    if (issue.code !== "unrecognized_keys" || !(issue.inst instanceof z.ZodObject)) return parsing.error?.(issue);
    return hasNoField(issue.keys, Object.keys(issue.inst.shape));
  },
};

/** Returns the first message about each value by path, because further ones usually have the same cause. */
function firstMessages(key: string, issues: readonly z.core.$ZodIssue[]): Readonly<Record<string, string>> {
  const messages: Record<string, string> = {};
  for (const { path, message } of issues) messages[[key, ...path].join(".")] ??= message;
  return messages;
}

function notValid(problems: readonly string[]): StackConfigError {
  return new StackConfigError(`The settings of this stack are not valid:\n  ${problems.join("\n  ")}`);
}

function variantIn(all: All): Variant {
  const given = all[`${projectName}:variant`] ?? "";
  const variant = variants.find((each) => each === given);
  if (variant !== undefined) return variant;
  throw notValid([`variant: ${given === "" ? "is required; it " : ""}must be one of ${variants.join(", ")}`]);
}

/** Returns the settings of this program with parsed structures. */
function settingsIn(all: All, variant: Variant, problems: string[]): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(all)) {
    const [project, key = ""] = name.split(":");
    if (project !== projectName || key === "variant" || value === "") continue;
    if (!Object.hasOwn(settingsOfVariant[variant], key)) {
      const others = variants.filter((other) => Object.hasOwn(settingsOfVariant[other], key));
      const meant = closest(key, Object.keys(settingsOfVariant[variant]));
      const [outer = ""] = key.split(".");
      const isField = outer !== key && Object.hasOwn(settingsOfVariant[variant], outer);
      let suggestion = meant === undefined ? "" : `; did you mean ${meant}?`;
      if (isField) suggestion = `; pulumi config set --path ${name} sets this field of ${outer}`;
      problems.push(
        `${key}: is not a setting${others.length > 0 ? ` on ${variant}, but on ${others.join(", ")}` : suggestion}`,
      );
    } else given[key] = textual.has(key) ? value : jsonOf(value);
  }
  return given;
}

/** The form of the names of regions. The names of zones have a suffix. */
const regionNames = { gcp: /^[a-z]+-[a-z]+\d+$/, aws: /^[a-z]+(-[a-z]+)+-\d+$/ } as const;
const regionExamples = { gcp: "us-central1", aws: "us-east-1" } as const;

/** Returns the region or project of the cloud's provider and its credentials. */
function cloudIn(all: All, variant: Variant, problems: string[]) {
  const isGoogles = variant === "gke" || variant === "existing-gke";
  const cloud = isGoogles ? "gcp" : "aws";
  const region = all[`${cloud}:region`] ?? "";
  const project = all["gcp:project"] ?? "";
  if (isGoogles && project === "") problems.push("gcp:project: is required: pulumi config set gcp:project ID");
  if (variant !== "existing" && region === "")
    problems.push(`${cloud}:region: is required: pulumi config set ${cloud}:region REGION`);
  else if (variant !== "existing" && !regionNames[cloud].test(region))
    problems.push(`${cloud}:region: must be a region, such as ${regionExamples[cloud]}, not ${region}`);
  const profileName = all["aws:profile"];
  const roleArn = assumedRole(all, problems);
  return {
    region,
    project,
    tags: tagsIn(all, cloud, problems),
    credentials: { ...(profileName !== undefined && { profileName }), ...(roleArn !== undefined && { roleArn }) },
  };
}

/** The schema of tags. The providers accept only text. */
const Tags = z.record(z.string(), z.string());

/**
 * Returns the tags of the provider: `aws:defaultTags` is `{tags: {...}}`, while `gcp:defaultLabels` contains the labels
 * directly.
 */
function tagsIn(all: All, cloud: "gcp" | "aws", problems: string[]): Readonly<Record<string, string>> {
  if (cloud === "gcp") return readJson(all, "gcp:defaultLabels", Tags, "{KEY: VALUE}", problems) ?? {};
  const tags = z.object({ tags: Tags.default({}) });
  return readJson(all, "aws:defaultTags", tags, "{tags: {KEY: VALUE}}", problems)?.tags ?? {};
}

/** Returns the last role of the chain that the provider assumes. */
function assumedRole(all: All, problems: string[]): string | undefined {
  const role = z.object({ roleArn: z.string().optional() });
  const roles =
    readJson(all, "aws:assumeRoles", z.array(role), "[{roleArn: ARN}]", problems) ??
    readJson(
      all,
      "aws:assumeRole",
      z.union([role.transform((only) => [only]), z.array(role)]),
      "{roleArn: ARN}",
      problems,
    );
  return roles?.at(-1)?.roleArn;
}

/** Parses a structured setting of a cloud's provider; undefined if it is absent or invalid. */
function readJson<Value>(
  all: All,
  key: string,
  schema: z.ZodType<Value>,
  form: string,
  problems: string[],
): Value | undefined {
  const text = ownValue(all, key) ?? "";
  if (text === "") return undefined;
  const parsed = schema.safeParse(jsonOf(text));
  if (!parsed.success) problems.push(`${key}: must be ${form}`);
  return parsed.data;
}

/** Parses a text as JSON; returns the text itself if it is not JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function workOut(settings: Settings, cloud: ReturnType<typeof cloudIn>): StackConfig {
  const namespace = settings.catalog.namespace ?? `${settings.namespace}-catalog`;
  const nodePools = "nodePools" in settings ? poolsOf(settings).pools : [];
  const ofRoles = architecturesOfRoles(nodePools, "architecture" in settings ? settings.architecture : "amd64");
  const workedOut = {
    teams: settings.teams.map((team) => ({ ...team, namespace: teamNamespace(settings.namespace, team) })),
    architectures: ofRoles,
    nodeSelectors: ofEachRole((role) => withArchitecture(roleLabels(settings, role), ofRoles[role])),
    ray: rayOf(settings, nodePools, ofRoles),
  };
  const { region, project, credentials, tags } = cloud;
  // The branches differ only in their types, because each variant has a different type of catalog.
  switch (settings.variant) {
    case "existing":
      return { ...settings, ...workedOut, catalog: { ...settings.catalog, namespace } };
    case "existing-gke":
      return { ...settings, ...workedOut, catalog: { ...settings.catalog, namespace }, region, project, tags };
    case "existing-eks":
      return { ...settings, ...workedOut, catalog: { ...settings.catalog, namespace }, region, tags };
    case "gke": {
      const runner = withRayClusters(settings, nodePools);
      return {
        ...settings,
        ...workedOut,
        runner,
        catalog: { ...settings.catalog, namespace },
        nodePools,
        region,
        project,
        tags,
      };
    }
    case "eks": {
      const runner = withRayClusters(settings, nodePools);
      const clientRole = clientRoleOf(settings);
      const catalog = { ...settings.catalog, namespace };
      return { ...settings, ...workedOut, runner, catalog, nodePools, region, clientRole, credentials, tags };
    }
  }
}

/**
 * Returns the configuration without pools whose machines the region does not offer, and without the default Ray clusters
 * on them. Warns about each of them.
 */
export function withoutPools<Its extends GkeConfig | EksConfig>(config: Its, missing: readonly string[]): Its {
  if (missing.length === 0) return config;
  const { variant, region, runner } = config;
  for (const { name, machineTypes } of config.nodePools.filter((pool) => missing.includes(pool.name)))
    pulumi.log.warn(
      `nodePools: the optional pool ${name} is left out, because no zone of ${region} offers ${machineTypes.join(", ")}. ` +
        "Choose another machine, or another region",
    );
  const nodePools = config.nodePools.filter(({ name }) => !missing.includes(name));
  const defaults = [config.nodePools, nodePools].map((pools) => defaultRayClusters(pools, variant));
  const isDefault = JSON.stringify(runner.rayClusters) === JSON.stringify(defaults[0]);
  const { build } = config.ray;
  const gpu = nodePools.some(({ role }) => role === "workerGpu");
  return {
    ...config,
    nodePools,
    ray: { ...config.ray, build: build && { ...build, gpu } },
    runner: isDefault ? { ...runner, rayClusters: defaults[1] } : runner,
  };
}

function withRayClusters({ variant, runner }: SettingsOf<"gke"> | SettingsOf<"eks">, pools: readonly NodePool[]) {
  return { ...runner, rayClusters: runner.rayClusters ?? defaultRayClusters(pools, variant) };
}

/** Returns the settings of Ray, with Ray's own images as the default. */
function rayOf(
  settings: Settings,
  nodePools: readonly NodePool[],
  ofRoles: WorkedOut["architectures"],
): WorkedOut["ray"] {
  const { ray } = settings;
  const { version, allowedNamespaces, bucketAccess, packages } = ray;
  const image = ray.image ?? rayImage(version, ofRoles.head);
  const gpuImage = ray.gpuImage ?? ray.image ?? rayGpuImage(version, ofRoles.workerGpu);
  // An existing cluster may have GPU nodes that the settings do not mention.
  const gpu = !("nodePools" in settings) || nodePools.some(({ role }) => role === "workerGpu");
  const build = buildsRayImages(settings) ? { packages, gpu } : undefined;
  const auth = ray.auth ?? (tokenHindrance(settings) === undefined ? "token" : "none");
  return { version, auth, image, gpuImage, bucketAccess, allowedNamespaces, build };
}
