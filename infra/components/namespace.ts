import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { Cluster } from "../cluster.ts";

export interface NamespaceArgs {
  readonly cluster: Cluster;
  readonly namespace: string;
  /** The level of Pod Security that is enforced; undefined where workloads of others may run. */
  readonly enforce: "baseline" | "restricted" | undefined;
  /** Deletes the namespace with the stack on a cluster that the stack did not create. */
  readonly deleteNamespace: boolean;
}

/**
 * Creates a namespace, or adopts an existing one by server-side apply. It may contain objects that do not belong to the
 * stack, so by default it is retained. On deletion, its content is deleted first, then the nodes, then the network.
 */
export function createNamespace(
  name: string,
  { cluster, namespace, enforce, deleteNamespace }: NamespaceArgs,
  parent: pulumi.Resource,
): kubernetes.core.v1.Namespace {
  return new kubernetes.core.v1.Namespace(
    name,
    {
      metadata: {
        name: namespace,
        labels: {
          "pod-security.kubernetes.io/warn": "restricted",
          ...(enforce !== undefined && { "pod-security.kubernetes.io/enforce": enforce }),
        },
      },
    },
    {
      parent,
      provider: cluster.kubernetes,
      dependsOn: [...cluster.nodes],
      retainOnDelete: !deleteNamespace && !cluster.isOwn,
    },
  );
}
