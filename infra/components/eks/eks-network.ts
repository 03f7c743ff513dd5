import type * as pulumi from "@pulumi/pulumi";
import type { AdoptedSubnets } from "./eks-zones.ts";

/** Where a cluster is: a network that the stack makes, or one that is there. */
export interface EksNetwork {
  readonly id: pulumi.Input<string>;
  readonly publicSubnetIds: readonly pulumi.Input<string>[];
  readonly privateSubnetIds: readonly pulumi.Input<string>[];
  /** Nodes cannot join before they have a way out. */
  readonly routes: readonly pulumi.Resource[];
  /** The private subnets in these zones. */
  privateSubnetsIn(zones: readonly string[]): readonly pulumi.Input<string>[];
}

/** A network that is there, of which nothing is changed. */
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
