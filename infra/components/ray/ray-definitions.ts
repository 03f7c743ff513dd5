import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { CreationCheck, ReleaseCheck, ReleaseInputs } from "../cluster-provider.ts";
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
            annotations: { ...metadata.annotations, "pulumi.com/patchForce": "true" },
          },
          spec,
        },
        { ...options, retainOnDelete: true },
      ),
  );
}

const addonMode = "addonmanager.kubernetes.io/mode";

/** Refuses a second operator for the namespaces: both would reconcile the same Ray clusters. */
export function refuseSecondOperator(namespaces: readonly string[], labels: Readonly<Record<string, string>>) {
  const check: CreationCheck = async (live) => {
    const definition = await live.find("apiextensions.k8s.io/v1", "CustomResourceDefinition", "rayclusters.ray.io");
    if (definition?.metadata.labels?.[addonMode] !== undefined)
      throw new Error(
        "the cluster has a KubeRay operator of its own, such as the Ray add-on of GKE. Set operator: {source: none}",
      );
    const selector = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
    const operators = await live.list("apps/v1", "Deployment", selector.join());
    const other = operators.find((each) => watchesAny(each as OperatorDeployment, namespaces));
    if (other === undefined) return;
    const { name, namespace = "" } = other.metadata;
    throw new Error(
      `the KubeRay operator ${namespace}/${name} watches ${namespaces.join(", ")} already. To use it, set operator: ` +
        `{source: none, namespace: ${namespace}}. If it is left from an interrupted up: helm uninstall ${name} --namespace ${namespace}`,
    );
  };
  return check;
}

/**
 * Refuses to remove a namespace with Ray jobs or clusters from the operator. Ray jobs have a finalizer that only the
 * operator removes, so that the deletion of such a namespace never ends.
 */
export const refuseAbandonedJobs: ReleaseCheck = async (live, wanted, former) => {
  const watched = watchedNamespaces(wanted);
  const removed = watchedNamespaces(former).filter((each) => !watched.includes(each));
  if (removed.length === 0) return;
  for (const kind of ["RayJob", "RayCluster"])
    for (const { metadata } of await live.list("ray.io/v1", kind, ""))
      if (removed.includes(metadata.namespace ?? ""))
        throw new Error(
          `the namespace ${metadata.namespace} leaves the stack, but has the ${kind} ${metadata.name}, which only the ` +
            `operator can delete. Cancel the jobs of the team, then: kubectl delete rayjobs,rayclusters --all ` +
            `--namespace ${metadata.namespace}`,
        );
};

function watchedNamespaces({ values }: ReleaseInputs): readonly unknown[] {
  const namespaces = values?.watchNamespace;
  return Array.isArray(namespaces) ? namespaces : [];
}

interface OperatorDeployment {
  readonly spec?: { readonly template?: { readonly spec?: { readonly containers?: readonly OperatorContainer[] } } };
}

interface OperatorContainer {
  readonly command?: readonly string[];
  readonly args?: readonly string[];
}

/** Without `--watch-namespace` an operator watches all namespaces. */
function watchesAny({ spec }: OperatorDeployment, namespaces: readonly string[]): boolean {
  const words = (spec?.template?.spec?.containers ?? []).flatMap(({ command = [], args = [] }) => [
    ...command,
    ...args,
  ]);
  const text = words.join(" ");
  const watched = /--?watch-namespace[= ](\S+)/.exec(text)?.[1];
  return watched === undefined || watched.split(",").some((each) => namespaces.includes(each));
}
