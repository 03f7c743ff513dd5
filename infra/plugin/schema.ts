import { StackOutputs } from "@tiltyard/platform";
import { documentationPage } from "@tiltyard/protocol";
import { z } from "zod";
import { CatalogOnExisting } from "../settings/catalog-settings.ts";
import { Runner, runnerDefaults } from "../settings/runner-settings.ts";
import { dnsLabel } from "../settings/setting-types.ts";
import { settingsOfVariant } from "../settings/settings.ts";

/** The types of the components in Pulumi's programs. */
export const componentTypes = {
  platform: "tiltyard:index:RayPlatform",
  catalog: "tiltyard:index:Catalog",
  runner: "tiltyard:index:Runner",
} as const;

type Property = Readonly<Record<string, unknown>>;

const reference = `${documentationPage("stack")} describes the fields.`;
/** A structure that the provider validates itself. */
const anything = { $ref: "pulumi.json#/Any" };

const { catalog: _catalog, runner: _runner, ...ofPlatform } = settingsOfVariant.existing;
const { enabled: _enabled, ...ofCatalog } = CatalogOnExisting.shape;
const { enabled: _alsoEnabled, ...ofRunner } = Runner.shape;

/** The names in the catalog's argument, because the catalog exists before its runner. */
export const RayClusterNames = z
  .array(dnsLabel, "must be a list of names")
  .default(Object.keys(runnerDefaults.rayClusters))
  .describe("The names of the Ray clusters of its runner. Requests of jobs may name no other ones.");

/** The outputs of a stack that a platform without a catalog has. */
const platformOutputs = Object.fromEntries(
  Object.entries(StackOutputs.shape).filter(
    ([name]) => !/^(catalog|jobRayClusters|keptOnDestroy|kubeconfig)/.test(name),
  ),
);
const catalogOutputs = z.object({
  namespace: z.string().describe("The namespace of the catalog, its secrets and its account."),
  url: z.string().describe("The catalog, for pods of the cluster."),
  publicUrl: z.string().optional().describe("The catalog, from outside of the cluster."),
  apiKey: z.string().describe("An API key of the catalog with the role admin."),
  runnerKey: z.string().describe("An API key of the catalog with the role runner."),
  image: z.string().describe("The image of the catalog and of its runner."),
  backupsUri: z.string().optional().describe("With Litestream: the copies of the database."),
}).shape;

/** The properties of a platform that its catalog and its runner read. */
const internals = {
  kubeconfig: { description: "The kubeconfig of the cluster.", type: "string", secret: true },
  settings: { description: "The settings of the platform, for its catalog and its runner.", ...anything },
  parts: partsFor("its catalog and its runner"),
  deployment: { description: "The mark of the objects of this deployment.", type: "string" },
};

/** Returns Pulumi's schema of the package, from which its command generates libraries for other languages. */
export function packageSchema(version: string) {
  const { platform, catalog, runner } = componentTypes;
  return {
    name: "tiltyard",
    displayName: "Tiltyard",
    version,
    description: "Ray on Kubernetes and a Lance catalog",
    resources: {
      [platform]: component(
        "Namespaces for Ray clusters with their rights and quotas, and the KubeRay operator.",
        propertiesOf(ofPlatform, "input", ["kubeconfig"]),
        ["kubeconfig", ...requiredOf(ofPlatform)],
        { ...propertiesOf(platformOutputs, "output"), ...internals },
        [...requiredOf(platformOutputs), ...Object.keys(internals)],
      ),
      [catalog]: component(
        "A Lance catalog for the Ray clusters of a platform.",
        {
          platform: referenceTo(platform),
          ...propertiesOf({ ...ofCatalog, rayClusters: RayClusterNames }, "input", ["database"]),
        },
        ["platform", "image"],
        { ...propertiesOf(catalogOutputs, "output", ["apiKey", "runnerKey"]), parts: partsFor("its runner") },
        [...requiredOf(catalogOutputs), "parts"],
      ),
      [runner]: component(
        "The runner of a catalog's jobs on the Ray clusters of a platform.",
        { platform: referenceTo(platform), catalog: referenceTo(catalog), ...propertiesOf(ofRunner, "input") },
        ["platform", "catalog"],
        {
          rayClusters: {
            description: "The Ray clusters that a job may name.",
            type: "array",
            items: { type: "string" },
          },
        },
        ["rayClusters"],
      ),
    },
    language: { python: { pyproject: { enabled: true } } },
  };
}

function partsFor(reader: string): Property {
  return { description: `The names of its objects, for ${reader}.`, ...anything };
}

function component(
  description: string,
  inputProperties: Property,
  requiredInputs: readonly string[],
  properties: Property,
  required: readonly string[],
) {
  return { isComponent: true, description, inputProperties, requiredInputs, properties, required };
}

function referenceTo(type: string): Property {
  return { description: "A component of the program.", $ref: `#/resources/${type}` };
}

function propertiesOf(shape: z.ZodRawShape, io: "input" | "output", secrets: readonly string[] = []) {
  return Object.fromEntries(
    Object.entries(shape).map(([name, schema]) => {
      const { description = reference, ...type } = propertyOf(schema, io);
      return [name, { description, ...type, ...(secrets.includes(name) && { secret: true }) }];
    }),
  );
}

function propertyOf(schema: z.core.$ZodType, io: "input" | "output"): Property {
  const { type, items, description } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  const described = description === undefined ? {} : { description };
  if (type === "string" || type === "boolean") return { ...described, type };
  const isList = type === "array" && typeof items === "object" && !Array.isArray(items) && items.type === "string";
  return { ...described, ...(isList ? { type: "array", items: { type: "string" } } : anything) };
}

function requiredOf(shape: z.ZodRawShape): string[] {
  return Object.entries(shape).flatMap(([name, schema]) => (z.safeParse(schema, undefined).success ? [] : [name]));
}
