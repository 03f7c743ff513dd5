import * as pulumi from "@pulumi/pulumi";
import type { CatalogParts } from "../components/catalog/catalog.ts";
import type { PlatformParts } from "../components/ray/ray-platform.ts";
import { known } from "./inputs.ts";
import { componentTypes } from "./schema.ts";

/** A component of the program that another component has as an argument, with its properties in the engine. */
class PlatformReference extends pulumi.ComponentResource {
  declare readonly settings: pulumi.Output<Readonly<Record<string, unknown>>>;
  declare readonly parts: pulumi.Output<Omit<PlatformParts, "priorities" | "resource">>;
  declare readonly kubeconfig: pulumi.Output<string>;
  declare readonly deployment: pulumi.Output<string>;

  constructor(name: string, urn: string) {
    const properties = { settings: undefined, parts: undefined, kubeconfig: undefined, deployment: undefined };
    super(componentTypes.platform, name, properties, { urn }, true);
  }
}

/** The settings of a catalog that its runner needs. */
interface OfCatalog {
  readonly volumeClaim?: string;
  readonly rayClusters: readonly string[];
}

class CatalogReference extends pulumi.ComponentResource {
  declare readonly parts: pulumi.Output<Pick<CatalogParts, "namespace" | "url"> & OfCatalog>;
  declare readonly runnerKey: pulumi.Output<string>;
  declare readonly image: pulumi.Output<string>;

  constructor(name: string, urn: string) {
    super(componentTypes.catalog, name, { parts: undefined, runnerKey: undefined, image: undefined }, { urn }, true);
  }
}

/** Lets Pulumi's library read references to components in arguments. */
export function registerReferences(): void {
  const construct = (name: string, type: string, urn: string) => {
    if (type === componentTypes.platform) return new PlatformReference(name, urn);
    if (type === componentTypes.catalog) return new CatalogReference(name, urn);
    throw new pulumi.RunError(`the component ${type} is no argument of another one`);
  };
  pulumi.runtime.registerResourceModule("tiltyard", "index", { construct });
}

/** Returns the platform that an argument refers to. Its cluster may be unknown in a preview. */
export async function platformOf(input: unknown) {
  const platform = await referenceOf("platform", input, PlatformReference);
  const { kubeconfig, deployment } = platform;
  const [settings, values] = await Promise.all([
    known("platform", platform.settings),
    known("platform", platform.parts),
  ]);
  const parts: PlatformParts = { ...values, priorities: [platform], resource: platform };
  return { settings, parts, kubeconfig, deployment };
}

/** Returns the catalog that an argument refers to. */
export async function catalogOf(input: unknown): Promise<CatalogParts & OfCatalog> {
  const catalog = await referenceOf("catalog", input, CatalogReference);
  const { image, runnerKey } = catalog;
  return { ...(await known("catalog", catalog.parts)), image, runnerKey, resource: catalog };
}

async function referenceOf<Reference extends pulumi.Resource>(
  argument: string,
  input: unknown,
  type: new (name: string, urn: string) => Reference,
): Promise<Reference> {
  const value: unknown = await known(argument, input);
  if (value instanceof type) return value;
  throw new pulumi.RunError(`${argument}: must be a component of this package, not ${JSON.stringify(value)}`);
}
