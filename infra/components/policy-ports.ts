import type * as pulumi from "@pulumi/pulumi";

/** A port of a rule of a network policy. */
export function tcp(port: pulumi.Input<number>) {
  return { protocol: "TCP", port };
}

/** The rule by which a pod finds others by their names. */
export const toNameServers = { ports: [tcp(53), { protocol: "UDP", port: 53 }] };
