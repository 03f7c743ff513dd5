import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { Cluster } from "../cluster.ts";

export interface NamespaceArgs {
  readonly cluster: Cluster;
  readonly namespace: string;
  /** The level of Pod Security that is refused on a cluster of the stack's own. */
  readonly enforce: "baseline" | "restricted";
  /** Whether it goes with the stack where the cluster is not the stack's. */
  readonly deleteNamespace: boolean;
}

/**
 * Server-side apply takes over a namespace that is there. It may hold what is not the stack's, so it stays when the
 * stack goes, unless a setting says otherwise. When it goes, what is in it goes first, then the nodes, then the network.
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
          // Says what would be refused; what runs here besides the stack is not refused.
          "pod-security.kubernetes.io/warn": "restricted",
          ...(cluster.isOwn && { "pod-security.kubernetes.io/enforce": enforce }),
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
