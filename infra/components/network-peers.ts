/** The parts of network policies. */
import type * as pulumi from "@pulumi/pulumi";

/** Selects one namespace by the label that Kubernetes sets on each. */
export function namespaceNamed(namespace: string) {
  return { matchLabels: { "kubernetes.io/metadata.name": namespace } };
}

/** Selects the pods of a namespace: all of them, or those of a selector. */
export function podsOf(namespace: string, podSelector?: object) {
  return { namespaceSelector: namespaceNamed(namespace), ...(podSelector !== undefined && { podSelector }) };
}

/** Returns a TCP port of a rule. */
export function tcp(port: pulumi.Input<number>) {
  return { protocol: "TCP", port };
}

/** Allows pods to resolve names. */
export const toNameServers = { ports: [tcp(53), { protocol: "UDP", port: 53 }] };
