import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { type ConstructResult, main, type Provider } from "@pulumi/pulumi/provider/index.js";
import { ownValue, parsing } from "@tiltyard/protocol";
import { rayImages } from "../components/ray/ray-images.ts";
import type { PlatformParts } from "../components/ray/ray-platform.ts";
import { configOfValues, type ExistingConfig } from "../config.ts";
import { createCatalog, createPlatform, createRunner, existingCluster, findDefinitions } from "../deploy-on.ts";
import { stackOutputs } from "../outputs.ts";
import { known, knownValues } from "./inputs.ts";
import { catalogOf, platformOf, registerReferences } from "./references.ts";
import { componentTypes, packageSchema, RayClusterNames } from "./schema.ts";

const { version }: { readonly version: string } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../package.json"), "utf8"),
);

type Construct = (
  name: string,
  inputs: pulumi.Inputs,
  options: pulumi.ComponentResourceOptions,
) => Promise<ConstructResult>;

/** The components by their types. The settings of the variant `existing` are the arguments of all of them. */
const constructs: Readonly<Record<string, Construct>> = {
  [componentTypes.platform]: constructPlatform,
  [componentTypes.catalog]: constructCatalog,
  [componentTypes.runner]: constructRunner,
};

/** Serves the components to programs in every language of Pulumi, on the cluster of the program. */
const provider: Provider = {
  version,
  getSchema: async () => JSON.stringify(packageSchema(version)),
  construct: async (name, type, inputs, options) => {
    const construct = ownValue(constructs, type);
    if (construct === undefined)
      throw new pulumi.RunError(`the plugin has no component ${type}, only ${Object.keys(constructs).join(", ")}`);
    return construct(name, inputs, options);
  },
};

class Component extends pulumi.ComponentResource {
  finish(outputs: pulumi.Inputs): ConstructResult {
    this.registerOutputs(outputs);
    return { urn: this.urn, state: outputs };
  }
}

async function constructPlatform(name: string, inputs: pulumi.Inputs, options: pulumi.ComponentResourceOptions) {
  // A preview does not know the kubeconfig of a cluster that the program creates.
  const { kubeconfig: givenKubeconfig, ...given } = inputs;
  const kubeconfig = pulumi.output(givenKubeconfig).apply(textOf);
  const settings = await knownValues(given);
  const config = configOf({ ...settings, catalog: { enabled: false }, runner: { enabled: false } });
  const definitions = await findDefinitions(config);
  const component = new Component(componentTypes.platform, name, {}, options);
  const below = { parent: component };
  const cluster = existingCluster(name, { ...config, kubeconfig }, below);
  const platform = createPlatform(name, { cluster, definitions }, config, below);
  const images = rayImages(name, config, cluster, platform);
  const deployed = {
    config,
    cluster,
    platform,
    images,
    database: "sqlite",
    catalog: undefined,
    runner: undefined,
  } as const;
  const { deployment } = cluster.kubernetes;
  const own = { settings, parts: partsOf(platform), deployment, kubeconfig: pulumi.secret(kubeconfig) };
  return component.finish({ ...stackOutputs(deployed), ...own });
}

async function constructCatalog(name: string, inputs: pulumi.Inputs, options: pulumi.ComponentResourceOptions) {
  const { platform: given, rayClusters: givenNames, ...own } = inputs;
  const { settings, parts, ...connection } = await platformOf(given);
  const config = configOf({ ...settings, catalog: await knownValues(own), runner: { enabled: false } });
  const rayClusters = namesOf(await known("rayClusters", givenNames));
  const component = new Component(componentTypes.catalog, name, {}, options);
  const below = { parent: component };
  const cluster = existingCluster(name, { ...config, ...connection }, below);
  const { database, volumeClaim } = config.catalog;
  const catalog = createCatalog(name, { cluster, platform: parts, database, rayClusters }, config, below);
  const { namespace, url, image, publicUrl, backupsUri } = catalog;
  const ofCatalog = { namespace, url, rayClusters, ...(volumeClaim !== undefined && { volumeClaim }) };
  const [apiKey, runnerKey] = [pulumi.secret(catalog.apiKey), pulumi.secret(catalog.runnerKey)];
  return component.finish({ namespace, url, image, apiKey, runnerKey, publicUrl, backupsUri, parts: ofCatalog });
}

async function constructRunner(name: string, inputs: pulumi.Inputs, options: pulumi.ComponentResourceOptions) {
  const { platform: given, catalog: givenCatalog, ...own } = inputs;
  const [{ settings, parts, ...connection }, catalog] = await Promise.all([platformOf(given), catalogOf(givenCatalog)]);
  const { volumeClaim } = catalog;
  const itsCatalog = { enabled: false, ...(volumeClaim !== undefined && { volumeClaim }) };
  const config = configOf({ ...settings, catalog: itsCatalog, runner: await knownValues(own) });
  refuseUnlisted(Object.keys(config.runner.rayClusters), catalog.rayClusters);
  const component = new Component(componentTypes.runner, name, {}, options);
  const below = { parent: component };
  const cluster = existingCluster(name, { ...config, ...connection }, below);
  const images = rayImages(name, config, cluster, component);
  const { rayClusters } = createRunner(name, { cluster, platform: parts, catalog, images }, config, below);
  return component.finish({ rayClusters });
}

/** @throws RunError for a value that is no list of names. */
function namesOf(given: unknown): readonly string[] {
  const { data, error } = RayClusterNames.safeParse(given ?? undefined, parsing);
  if (error) throw new pulumi.RunError(`rayClusters: ${error.issues[0]?.message}`);
  return data;
}

/** @throws RunError when the catalog would refuse jobs for a Ray cluster of its runner. */
function refuseUnlisted(ofRunner: readonly string[], ofCatalog: readonly string[]): void {
  const unlisted = ofRunner.filter((name) => !ofCatalog.includes(name));
  if (unlisted.length === 0) return;
  throw new pulumi.RunError(
    `rayClusters: the catalog refuses jobs for ${unlisted.join(", ")}. Add the name to the argument rayClusters of the Catalog`,
  );
}

/** Returns a kubeconfig as text. Programs in YAML and the component of EKS have an object. */
function textOf(kubeconfig: unknown): string {
  return typeof kubeconfig === "string" ? kubeconfig : JSON.stringify(kubeconfig);
}

/** Returns the parts of a platform as values, all of which are known on an existing cluster. */
function partsOf(platform: PlatformParts): Omit<PlatformParts, "priorities" | "resource"> {
  const { namespace, serviceAccount, headPriorityClass, controlPriorityClass, namespaces, clients, logs, queue } =
    platform;
  const teams = platform.teams.map((team) => ({ name: team.name, namespace: team.namespace }));
  return {
    namespace,
    serviceAccount,
    headPriorityClass,
    controlPriorityClass,
    namespaces,
    clients,
    logs,
    queue,
    teams,
  };
}

/** Validates settings. @throws StackConfigError */
function configOf(settings: Readonly<Record<string, unknown>>): ExistingConfig {
  return configOfValues("existing", settings);
}

registerReferences();
main(provider, process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
});
