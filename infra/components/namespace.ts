import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { Cluster } from "../cluster.ts";
import type { CreationCheck } from "./cluster-provider.ts";
import { stackLabel } from "./ownership.ts";

export interface NamespaceArgs {
  readonly cluster: Cluster;
  readonly namespace: string;
  /** The level of Pod Security that is enforced. */
  readonly enforce: "baseline" | "restricted";
  /** The directions in which its pods have no connections unless another network policy allows them. */
  readonly denied: readonly ("Ingress" | "Egress")[];
  /** Deletes the namespace with the stack on a cluster that the stack did not create. */
  readonly deleteNamespace: boolean;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Further checks before its creation and its update. */
  readonly hooks?: pulumi.ResourceHookBinding;
}

const levelPrefix = "pod-security.kubernetes.io/";

/**
 * Creates a namespace, or adopts an existing one by server-side apply, and denies all connections that no other policy
 * allows. It may contain objects that do not belong to the stack, so by default it is retained. On deletion, its content
 * is deleted first, then the nodes, then the network.
 */
export function createNamespace(
  name: string,
  { cluster, namespace, enforce, denied, deleteNamespace, labels, annotations, hooks = {} }: NamespaceArgs,
  parent: pulumi.Resource,
): kubernetes.core.v1.Namespace {
  const created = new kubernetes.core.v1.Namespace(
    name,
    {
      metadata: {
        name: namespace,
        labels: {
          ...labels,
          [`${levelPrefix}warn`]: "restricted",
          [`${levelPrefix}enforce`]: enforce,
        },
        ...(annotations !== undefined && { annotations }),
      },
    },
    {
      parent,
      provider: cluster.kubernetes,
      dependsOn: [...cluster.nodes],
      retainOnDelete: !deleteNamespace && !cluster.isOwn,
      hooks: {
        ...hooks,
        beforeCreate: [
          cluster.kubernetes.beforeCreate(`${name}-levels`, refuseOtherLevels),
          ...(hooks.beforeCreate ?? []),
        ],
      },
    },
  );
  new kubernetes.networking.v1.NetworkPolicy(
    `${name}-default`,
    { metadata: { name: "default-deny", namespace }, spec: { podSelector: {}, policyTypes: [...denied] } },
    { parent, provider: cluster.kubernetes, dependsOn: [created] },
  );
  return created;
}

/** Refuses to replace the Pod Security levels of a person, of which server-side apply would report a conflict. */
export const refuseOtherLevels: CreationCheck = async (live, { apiVersion, kind, metadata: { name, labels = {} } }) => {
  const found = (await live.find(apiVersion, kind, name))?.metadata.labels ?? {};
  if (found[stackLabel] !== undefined) return;
  for (const [label, level] of Object.entries(labels))
    if (label.startsWith(levelPrefix) && found[label] !== undefined && found[label] !== level)
      throw new Error(
        `the namespace ${name} has the label ${label}=${found[label]}, and the stack sets ${level}. Choose another ` +
          `namespace, or remove the label: kubectl label namespace ${name} ${label}-`,
      );
};
