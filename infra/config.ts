import * as pulumi from "@pulumi/pulumi";
import { labelValue, rayImage, type StackOutputs } from "@tiltyard/protocol";
import type { NodePool, NodeRole } from "./node-pools.ts";
import { Settings, structured, textual } from "./settings.ts";
import { poolsOf, rules } from "./settings-rules.ts";

const projectName = "tiltyard";

/** The settings of a stack, checked as a whole; docs/infra.md lists them. */
export interface StackConfig extends Omit<Settings, "nodePools" | "ray"> {
  readonly ray: { readonly version: string; readonly image: string };
  /** Empty on a cluster that is there already. */
  readonly nodePools: readonly NodePool[];
  /** Of the cloud, from its provider's own settings. */
  readonly region: string;
  readonly project: string;
}

/** Settings that are not valid. The message lists every problem with its path; Pulumi shows it without a trace. */
export class StackConfigError extends pulumi.RunError {}

/** The node label of a role, as a selector. */
export function nodeSelector(config: StackConfig, role: NodeRole): Record<string, string> {
  return { [`${config.labelDomain}/${config.labelKeys[role]}`]: labelValue };
}

/** Priority classes of the stack; pods of a lower one make room for those of a higher one. */
export function priorityClasses({ namespace }: StackConfig) {
  return { control: `tiltyard-control-${namespace}`, head: `tiltyard-ray-head-${namespace}` };
}

/** The claim with the tables of a `file:` bucket, and where pods mount it: at the path of its URI, so that locations hold. */
export function tablesVolume({ bucket, catalog }: StackConfig): StackOutputs["tablesVolume"] {
  if (catalog.volumeClaim === undefined || bucket === undefined) return undefined;
  return { claim: catalog.volumeClaim, path: bucket.slice("file://".length) };
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
  const given = settingsIn(all, problems);
  const settings: Partial<Record<keyof Settings, unknown>> = {};
  for (const [key, schema] of Object.entries(Settings.shape)) {
    const parsed = schema.safeParse(given[key]);
    if (parsed.success) settings[key as keyof Settings] = parsed.data;
    for (const { path, message } of parsed.error?.issues ?? [])
      problems.push(`${[key, ...path].join(".")}: ${given[key] === undefined ? "is required; it " : ""}${message}`);
  }
  const cloud = cloudIn(all, settings.variant);
  // What is wrong by itself is told already; what depends on it would only be told wrongly.
  for (const { needs, problemsOf } of rules)
    if (needs.every((key) => key in settings)) problems.push(...problemsOf(settings as Settings));
  problems.push(...cloud.problems);
  if (problems.length > 0)
    throw new StackConfigError(`The settings of this stack are not valid:\n  ${problems.join("\n  ")}`);

  const { ray, ...valid } = settings as Settings;
  const { version: rayVersion, image = rayImage(rayVersion) } = ray;
  const { region, project } = cloud;
  return { ...valid, ray: { version: rayVersion, image }, nodePools: poolsOf(valid).pools, region, project };
}

/** The settings of this program, their structures read. */
function settingsIn(all: Readonly<Record<string, string>>, problems: string[]): Record<string, unknown> {
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
        given[key] = value;
      }
  }
  return given;
}

/** Where the cloud's own provider is told to work. */
function cloudIn(all: Readonly<Record<string, string>>, variant: unknown) {
  const cloud = variant === "gke" ? "gcp" : "aws";
  const region = all[`${cloud}:region`] ?? "";
  const project = all["gcp:project"] ?? "";
  const problems: string[] = [];
  if (variant === "gke" && project === "") problems.push("gcp:project: is required: pulumi config set gcp:project ID");
  if ((variant === "gke" || variant === "eks") && region === "")
    problems.push(`${cloud}:region: is required: pulumi config set ${cloud}:region REGION`);
  return { region, project, problems };
}
