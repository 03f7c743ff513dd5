import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import type { CreationCheck } from "../cluster-provider.ts";
import { forcedApply, type OwnedObject, stackId, stackLabel } from "../ownership.ts";
import type { Definition } from "./chart-definitions.ts";

/**
 * Creates KubeRay's resource definitions, or upgrades those that exist. They belong to the whole cluster: stacks and
 * people share them, and the deletion of one deletes every Ray cluster. So they have no owner, and outlive the stack.
 */
export function createDefinitions(
  name: string,
  definitions: readonly Definition[],
  options: pulumi.CustomResourceOptions,
): readonly pulumi.Resource[] {
  return definitions.map(
    ({ metadata, spec }) =>
      new kubernetes.apiextensions.v1.CustomResourceDefinition(
        `${name}-${spec.names.plural}`,
        {
          metadata: {
            name: metadata.name,
            // Helm, or another stack, may own the fields.
            annotations: { ...metadata.annotations, ...forcedApply },
          },
          spec,
        },
        { ...options, retainOnDelete: true },
      ),
  );
}

const addonMode = "addonmanager.kubernetes.io/mode";

/**
 * Refuses a second operator for the namespaces: both would reconcile the same Ray clusters.
 *
 * @param namespaces The namespaces of Ray clusters. The operator is in the first one.
 * @param change The change of the stack's own operator, which exists before an update and not before its creation.
 */
export function refuseSecondOperator(
  namespaces: readonly string[],
  labels: Readonly<Record<string, string>>,
  change: "creation" | "update" = "creation",
) {
  const check: CreationCheck = async (live) => {
    const definition = await live.find("apiextensions.k8s.io/v1", "CustomResourceDefinition", "rayclusters.ray.io");
    if (definition?.metadata.labels?.[addonMode] !== undefined)
      throw new Error(
        "the cluster has a KubeRay operator of its own, such as the Ray add-on of GKE. Set operator: {source: none}",
      );
    const found = (await operatorsIn(live, labels)).filter(
      ({ metadata }) => change === "creation" || metadata.namespace !== namespaces[0],
    );
    const areReplaced = await Promise.all(found.map((each) => isReplaced(each, namespaces, live)));
    const operators = found.filter((_, index) => areReplaced[index] !== true);
    const watching = await Promise.all(operators.map(async (each) => ({ each, watched: await watchedBy(each, live) })));
    const other = watching.find(
      ({ watched }) => watched === undefined || watched.some((namespace) => namespaces.includes(namespace)),
    )?.each;
    if (other === undefined) return;
    const { name, namespace = "" } = other.metadata;
    throw new Error(
      `the KubeRay operator ${namespace}/${name} watches ${namespaces.join(", ")} already. To use it, set operator: ` +
        `{source: none, namespace: ${namespace}}. If it is left from an interrupted up: helm uninstall ${name} --namespace ${namespace}`,
    );
  };
  return check;
}

type Live = Parameters<CreationCheck>[0];

interface OperatorDeployment extends OwnedObject {
  readonly spec?: { readonly template?: { readonly spec?: { readonly containers?: readonly OperatorContainer[] } } };
}

interface OperatorContainer {
  readonly command?: readonly string[];
  readonly args?: readonly string[];
}

async function operatorsIn(
  live: Live,
  labels: Readonly<Record<string, string>>,
): Promise<readonly OperatorDeployment[]> {
  const selector = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return live.list("apps/v1", "Deployment", selector.join());
}

/**
 * Reports whether an operator is that of the stack's former namespace. An `up` that renames the namespace deletes it before
 * this check, but a preview does not.
 */
async function isReplaced({ metadata }: OwnedObject, namespaces: readonly string[], live: Live): Promise<boolean> {
  const { namespace = "" } = metadata;
  if (!pulumi.runtime.isDryRun() || namespace === namespaces[0]) return false;
  const itsNamespace = await live.find("v1", "Namespace", namespace);
  return itsNamespace?.metadata.labels?.[stackLabel] === stackId();
}

interface ConfigMap extends OwnedObject {
  readonly data?: Readonly<Record<string, string>>;
}

/**
 * Returns the namespaces of an operator; undefined for one that watches all of them. Its chart passes them as an argument,
 * or with `configuration.enabled` in a config map that is named after the deployment.
 */
async function watchedBy({ metadata, spec }: OperatorDeployment, live: Live): Promise<readonly string[] | undefined> {
  const words = (spec?.template?.spec?.containers ?? []).flatMap(({ command = [], args = [] }) => [
    ...command,
    ...args,
  ]);
  const text = words.join(" ");
  if (!/--?config[= ]/.test(text)) return /--?watch-namespace[= ](\S+)/.exec(text)?.[1]?.split(",");
  const found = await live.find("v1", "ConfigMap", `${metadata.name}-config`, metadata.namespace);
  const file: unknown = parseYaml((found as ConfigMap | undefined)?.data?.["config.yaml"] ?? "");
  const { data } = z.object({ watchNamespace: z.string().min(1) }).safeParse(file);
  return data?.watchNamespace.split(",");
}
