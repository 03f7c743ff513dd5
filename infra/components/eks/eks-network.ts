import type * as pulumi from "@pulumi/pulumi";
import type { AdoptedSubnets } from "./eks-zones.ts";

/** The network of a cluster, which the stack creates or adopts. */
export interface EksNetwork {
  readonly id: pulumi.Input<string>;
  readonly publicSubnetIds: readonly pulumi.Input<string>[];
  readonly privateSubnetIds: readonly pulumi.Input<string>[];
  /** The routes to the internet, without which nodes cannot join. */
  readonly routes: readonly pulumi.Resource[];
  /** Returns the private subnets in these zones. */
  privateSubnetsIn(zones: readonly string[]): readonly pulumi.Input<string>[];
}

/** Returns an existing network, which stays unchanged. */
export function adoptedNetwork(
  vpc: { readonly id: string; readonly publicSubnetIds: readonly string[] },
  subnets: AdoptedSubnets,
): EksNetwork {
  return {
    id: vpc.id,
    publicSubnetIds: vpc.publicSubnetIds,
    privateSubnetIds: subnets.map(({ id }) => id),
    routes: [],
    privateSubnetsIn: (zones) => subnets.filter(({ zone }) => zones.includes(zone)).map(({ id }) => id),
  };
}
