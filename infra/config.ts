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
import { catalogNamespace } from "./settings/catalog-settings.ts";
import { clientRoleOf } from "./settings/name-rules.ts";
import { type AllSettings, parseJson, parseProviderSettings, projectName } from "./settings/provider-settings.ts";
import type { RunnerSettings } from "./settings/runner-settings.ts";
import { hasNoField } from "./settings/setting-types.ts";
import {
  isText,
  type Settings,
  type SettingsOf,
  settingsOfVariant,
  type Variant,
  variants,
} from "./settings/settings.ts";
import { buildsRayImages, missingForTokens, poolsOf, rules } from "./settings/settings-rules.ts";
import { problemsOfRegion } from "./settings/storage-rules.ts";
import { type Team, teamNamespace } from "./settings/team-settings.ts";

/** The text in the files of the stacks that users replace. */
const placeholder = "FILL-IN";

/** The values that are derived from the settings on every variant. */
interface Derived {
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
  /** Deletes the namespaces with the stack on a cluster that the stack did not create. */
  readonly deleteNamespace: boolean;
}

/** The additional derived values on clouds. */
interface OnCloud extends Derived, CloudLocation {
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

/** A program with the component of infra/plugin/provider.ts may learn the kubeconfig only during the deployment. */
interface WithKubeconfig {
  readonly kubeconfig?: string | pulumi.Output<string> | undefined;
}

export type ExistingConfig = Config<"existing", Derived & WithKubeconfig>;
export type ExistingGkeConfig = Config<"existing-gke", Derived & CloudLocation & { readonly project: string }>;
export type ExistingEksConfig = Config<"existing-eks", Derived & CloudLocation>;
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

/**
 * Validates settings.
 *
 * @param all Pulumi's settings by their full names: `tiltyard:variant`, `gcp:project`, ...
 * @param today The date for checks of the end of support.
 * @throws StackConfigError
 */
export function parseStackConfig(all: AllSettings, today: Date): StackConfig {
  const found = Object.entries(all).flatMap(([name, text]) =>
    placeholdersIn(text.includes(placeholder) ? parseJson(text) : "", name.replace(`${projectName}:`, "")),
  );
  if (found.length > 0) throw invalidSettings(found.map((path) => `${path}: replace ${placeholder} with your value`));
  const variant = parseVariant(all);
  const problems: string[] = [];
  const given = parseStructures(all, variant, problems);
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
  const cloud = parseProviderSettings(all, variant, problems);
  problems.push(...problemsOfRegion(settings as Settings, cloud.region));
  if (problems.length > 0) throw invalidSettings(problems);
  return derive(settings as Settings, cloud);
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
  ofProviders: AllSettings = {},
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
function placeholdersIn(value: unknown, path: string): string[] {
  if (typeof value === "string") return value.includes(placeholder) ? [path] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => placeholdersIn(each, `${path}.${key}`));
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

function invalidSettings(problems: readonly string[]): StackConfigError {
  return new StackConfigError(`The settings of this stack are not valid:\n  ${problems.join("\n  ")}`);
}

function parseVariant(all: AllSettings): Variant {
  const given = all[`${projectName}:variant`] ?? "";
  const variant = variants.find((each) => each === given);
  if (variant !== undefined) return variant;
  throw invalidSettings([`variant: ${given === "" ? "is required; it " : ""}must be one of ${variants.join(", ")}`]);
}

/** Returns the settings of this program with parsed structures. */
function parseStructures(all: AllSettings, variant: Variant, problems: string[]): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(all)) {
    const [project, key = ""] = name.split(":");
    if (project !== projectName || key === "variant" || value === "") continue;
    const schema = ownValue<z.ZodType>(settingsOfVariant[variant], key);
    if (schema === undefined) problems.push(`${key}: is not a setting${suggestionFor(key, variant)}`);
    else given[key] = isText(schema) ? value : parseJson(value);
  }
  return given;
}

/** Returns the end of the message about an unknown setting: where it exists, or the one that it most likely means. */
function suggestionFor(key: string, variant: Variant): string {
  const others = variants.filter((other) => Object.hasOwn(settingsOfVariant[other], key));
  if (others.length > 0) return ` on ${variant}, but on ${others.join(", ")}`;
  const [outer = ""] = key.split(".");
  if (outer !== key && Object.hasOwn(settingsOfVariant[variant], outer))
    return `; pulumi config set --path ${projectName}:${key} sets this field of ${outer}`;
  const meant = closest(key, Object.keys(settingsOfVariant[variant]));
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

/** Returns the configuration with the values that are derived from the settings. */
function derive(settings: Settings, cloud: ReturnType<typeof parseProviderSettings>): StackConfig {
  const namespace = catalogNamespace(settings.namespace, settings.catalog);
  const nodePools = "nodePools" in settings ? poolsOf(settings).pools : [];
  const ofRoles = architecturesOfRoles(nodePools, "architecture" in settings ? settings.architecture : "amd64");
  const derived = {
    teams: settings.teams.map((team) => ({ ...team, namespace: teamNamespace(settings.namespace, team) })),
    architectures: ofRoles,
    nodeSelectors: ofEachRole((role) => withArchitecture(roleLabels(settings, role), ofRoles[role])),
    ray: rayOf(settings, nodePools, ofRoles),
    deleteNamespace: "deleteNamespace" in settings && settings.deleteNamespace,
  };
  const { region, project, credentials, tags } = cloud;
  // The branches differ only in their types, because each variant has a different type of catalog.
  switch (settings.variant) {
    case "existing":
      return { ...settings, ...derived, catalog: { ...settings.catalog, namespace } };
    case "existing-gke":
      return { ...settings, ...derived, catalog: { ...settings.catalog, namespace }, region, project, tags };
    case "existing-eks":
      return { ...settings, ...derived, catalog: { ...settings.catalog, namespace }, region, tags };
    case "gke": {
      const catalog = { ...settings.catalog, namespace };
      const runner = withRayClusters(settings, nodePools);
      return { ...settings, ...derived, catalog, runner, nodePools, region, project, tags };
    }
    case "eks": {
      const catalog = { ...settings.catalog, namespace };
      const runner = withRayClusters(settings, nodePools);
      const clientRole = clientRoleOf(settings);
      return { ...settings, ...derived, catalog, runner, nodePools, region, clientRole, credentials, tags };
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
  const gpu = hasGpus(nodePools);
  return {
    ...config,
    nodePools,
    ray: { ...config.ray, build: build && { ...build, gpu } },
    runner: isDefault ? { ...runner, rayClusters: defaults[1] } : runner,
  };
}

function hasGpus(pools: readonly NodePool[]): boolean {
  return pools.some(({ role }) => role === "workerGpu");
}

function withRayClusters({ variant, runner }: SettingsOf<"gke"> | SettingsOf<"eks">, pools: readonly NodePool[]) {
  return { ...runner, rayClusters: runner.rayClusters ?? defaultRayClusters(pools, variant) };
}

/** Returns the settings of Ray, with Ray's own images as the default. */
function rayOf(settings: Settings, nodePools: readonly NodePool[], ofRoles: Derived["architectures"]): Derived["ray"] {
  const { ray } = settings;
  const { version, allowedNamespaces, bucketAccess, packages } = ray;
  const image = ray.image ?? rayImage(version, ofRoles.head);
  const gpuImage = ray.gpuImage ?? ray.image ?? rayGpuImage(version, ofRoles.workerGpu);
  // An existing cluster may have GPU nodes that the settings do not mention.
  const gpu = !("nodePools" in settings) || hasGpus(nodePools);
  const build = buildsRayImages(settings) ? { packages, gpu } : undefined;
  const auth = ray.auth ?? (missingForTokens(settings) === undefined ? "token" : "none");
  return { version, auth, image, gpuImage, bucketAccess, allowedNamespaces, build };
}
