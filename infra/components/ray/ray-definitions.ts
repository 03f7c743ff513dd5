import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { CreationCheck, ReleaseCheck, ReleaseInputs } from "../cluster-provider.ts";
import { annotations, type OwnedObject, stackId, stackLabel } from "../ownership.ts";
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
    const operators = await operatorsIn(live, labels);
    const other = operators.find((each) => {
      const watched = watchedBy(each);
      return watched === undefined || watched.some((namespace) => namespaces.includes(namespace));
    });
    if (other === undefined) return;
    const { name, namespace = "" } = other.metadata;
    throw new Error(
      `the KubeRay operator ${namespace}/${name} watches ${namespaces.join(", ")} already. To use it, set operator: ` +
        `{source: none, namespace: ${namespace}}. If it is left from an interrupted up: helm uninstall ${name} --namespace ${namespace}`,
    );
  };
  return check;
}

/** Refuses to remove a namespace with Ray jobs or clusters from the operator. */
export const refuseAbandonedJobs: ReleaseCheck = async (live, wanted, former) => {
  const watched = watchedNamespaces(wanted);
  await refuseJobsIn(
    watchedNamespaces(former).filter((each) => !watched.includes(each)),
    live,
  );
};

/**
 * Refuses to create the operator in another namespace, after which the one in the former namespace is deleted, while a
 * namespace that leaves the stack has Ray jobs or clusters.
 *
 * @param namespaces The namespaces of the new operator, which is in the first one.
 * @param urnOf Returns the URN of its namespace, which is also that of the former one.
 */
export function refuseMoveFromJobs(
  namespaces: readonly string[],
  labels: Readonly<Record<string, string>>,
  urnOf: () => Promise<string>,
): CreationCheck {
  return async (live) => {
    const urn = await urnOf();
    const ofStack = await live.list("v1", "Namespace", `${stackLabel}=${stackId()}`);
    const homes = ofStack.filter(({ metadata }) => metadata.annotations?.[annotations.urn] === urn);
    const former = (await operatorsIn(live, labels)).filter(
      ({ metadata: { namespace } }) =>
        namespace !== namespaces[0] && homes.some(({ metadata }) => metadata.name === namespace),
    );
    const watched = former.flatMap((each) => watchedBy(each) ?? []);
    await refuseJobsIn(
      watched.filter((each) => !namespaces.includes(each)),
      live,
    );
  };
}

/**
 * Refuses to leave namespaces with Ray jobs or clusters without an operator. Ray jobs have a finalizer that only the
 * operator removes, so that the deletion of such a namespace never ends, and that of an ended job's Ray cluster never
 * begins.
 */
async function refuseJobsIn(removed: readonly unknown[], live: Pick<Live, "list">): Promise<void> {
  if (removed.length === 0) return;
  for (const kind of ["RayJob", "RayCluster"])
    for (const { metadata } of await live.list("ray.io/v1", kind, ""))
      if (removed.includes(metadata.namespace ?? ""))
        throw new Error(
          `the namespace ${metadata.namespace} leaves the stack, but has the ${kind} ${metadata.name}, which only the ` +
            `operator can delete. Cancel the jobs of the namespace, then: kubectl delete rayjobs,rayclusters --all ` +
            `--namespace ${metadata.namespace}`,
        );
}

function watchedNamespaces({ values }: ReleaseInputs): readonly unknown[] {
  const namespaces = values?.watchNamespace;
  return Array.isArray(namespaces) ? namespaces : [];
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

/** Returns the namespaces of an operator; undefined for one without `--watch-namespace`, which watches all of them. */
function watchedBy({ spec }: OperatorDeployment): readonly string[] | undefined {
  const words = (spec?.template?.spec?.containers ?? []).flatMap(({ command = [], args = [] }) => [
    ...command,
    ...args,
  ]);
  const text = words.join(" ");
  return /--?watch-namespace[= ](\S+)/.exec(text)?.[1]?.split(",");
}
