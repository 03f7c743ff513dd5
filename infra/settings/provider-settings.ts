/** The settings of the clouds' own providers, which Pulumi's library passes along with those of the stack. */
import { ownValue } from "@tiltyard/protocol";
import { z } from "zod";
import type { Variant } from "./settings.ts";

/** The prefix of the settings of this program: `tiltyard:variant`. */
export const projectName = "tiltyard";

/** Pulumi's settings by their full names: `tiltyard:variant`, `gcp:project`, ... */
export type AllSettings = Readonly<Record<string, string>>;

/** The form of the names of regions. The names of zones have a suffix. */
const regionNames = { gcp: /^[a-z]+-[a-z]+\d+$/, aws: /^[a-z]+(-[a-z]+)+-\d+$/ } as const;
const regionExamples = { gcp: "us-central1", aws: "us-east-1" } as const;

/**
 * Returns the region of the cloud's provider, its project, its tags and its credentials. An invalid region is empty, so
 * that no other setting is compared with it.
 *
 * @param problems The list to which problems are added.
 */
export function parseProviderSettings(all: AllSettings, variant: Variant, problems: string[]) {
  const isGoogles = variant === "gke" || variant === "existing-gke";
  const cloud = isGoogles ? "gcp" : "aws";
  const region = all[`${cloud}:region`] ?? "";
  const project = all["gcp:project"] ?? "";
  if (isGoogles && project === "") problems.push("gcp:project: is required: pulumi config set gcp:project ID");
  const isRegion = regionNames[cloud].test(region);
  if (variant !== "existing" && region === "")
    problems.push(`${cloud}:region: is required: pulumi config set ${cloud}:region REGION`);
  else if (variant !== "existing" && !isRegion)
    problems.push(`${cloud}:region: must be a region, such as ${regionExamples[cloud]}, not ${region}`);
  const profileName = all["aws:profile"];
  const roleArn = assumedRole(all, problems);
  return {
    region: isRegion ? region : "",
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
function tagsIn(all: AllSettings, cloud: "gcp" | "aws", problems: string[]): Readonly<Record<string, string>> {
  if (cloud === "gcp") return readJson(all, "gcp:defaultLabels", Tags, "{KEY: VALUE}", problems) ?? {};
  const tags = z.object({ tags: Tags.default({}) });
  return readJson(all, "aws:defaultTags", tags, "{tags: {KEY: VALUE}}", problems)?.tags ?? {};
}

/** Returns the last role of the chain that the provider assumes. */
function assumedRole(all: AllSettings, problems: string[]): string | undefined {
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
  all: AllSettings,
  key: string,
  schema: z.ZodType<Value>,
  form: string,
  problems: string[],
): Value | undefined {
  const text = ownValue(all, key) ?? "";
  if (text === "") return undefined;
  const parsed = schema.safeParse(parseJson(text));
  if (!parsed.success) problems.push(`${key}: must be ${form}`);
  return parsed.data;
}

/** Parses a text as JSON; returns the text itself if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
