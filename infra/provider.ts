import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { main, type Provider } from "@pulumi/pulumi/provider/index.js";
import { type ExistingConfig, parseStackConfig } from "./config.ts";
import { deployOn, existingCluster, findDefinitions } from "./deploy-on.ts";
import { packageSchema, platformType } from "./provider-schema.ts";

const { version }: { readonly version: string } = JSON.parse(
  readFileSync(join(import.meta.dirname, "package.json"), "utf8"),
);

/**
 * Serves the component `Platform` to programs in every language of Pulumi: Ray, the catalog and its runner on the cluster
 * of the program. Its arguments are the settings of a stack of the variant `existing`, its properties the outputs of one.
 */
const provider: Provider = {
  version,
  getSchema: async () => JSON.stringify(packageSchema(version)),
  construct: async (name, type, inputs, options) => {
    if (type !== platformType) throw new pulumi.RunError(`the plugin has no component ${type}, only ${platformType}`);
    // A preview does not know the kubeconfig of a cluster that the program creates.
    const { kubeconfig, ...settings } = inputs;
    const config = await configOf(settings);
    const definitions = await findDefinitions(config);
    const platform = new Platform(type, name, {}, options);
    const cluster = existingCluster(name, { ...config, kubeconfig }, { parent: platform });
    const { database } = config.catalog;
    const outputs = deployOn({ cluster, database, definitions }, config, { name, parent: platform });
    platform.finish(outputs);
    return { urn: platform.urn, state: outputs };
  },
};

class Platform extends pulumi.ComponentResource {
  finish(outputs: pulumi.Inputs): void {
    this.registerOutputs(outputs);
  }
}

/** Validates settings. @throws StackConfigError; RunError for values that a preview does not know. */
async function configOf(settings: pulumi.Inputs): Promise<ExistingConfig> {
  const texts = await Promise.all(
    Object.entries(settings).map(async ([key, input]) => {
      const value = await known(key, input);
      return [`tiltyard:${key}`, typeof value === "string" ? value : JSON.stringify(value)] as const;
    }),
  );
  const config = parseStackConfig({ ...Object.fromEntries(texts), "tiltyard:variant": "existing" }, new Date());
  if (config.variant !== "existing") throw new Error(`the variant is ${config.variant}`);
  return config;
}

async function known(key: string, input: unknown): Promise<unknown> {
  if (typeof input !== "object" || input === null || !("isKnown" in input)) return input;
  if (!(await input.isKnown)) throw new pulumi.RunError(`${key}: the value must be known before the deployment`);
  return new Promise((resolve) => pulumi.output(input).apply(resolve));
}

main(provider, process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
});
