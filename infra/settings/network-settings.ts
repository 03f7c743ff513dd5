import { z } from "zod";
import { cidr, isMap } from "./setting-types.ts";

/** The addresses that may call the public endpoint; empty for all ({@link openNetworks}). */
const authorizedNetworks = z.array(cidr).default([]);

/** Creates the schema of a network. With a `vpc`, the network is adopted, and the settings of new networks are rejected. */
function networkSchema<Own extends z.ZodRawShape, Adopted extends z.ZodRawShape>(own: Own, adopted: Adopted) {
  return z.preprocess(
    (given) => (isMap(given) ? { ...given, isAdopted: "vpc" in given } : given),
    z.discriminatedUnion(
      "isAdopted",
      [
        z.strictObject({ isAdopted: z.literal(false), authorizedNetworks, ...own }),
        z.strictObject({ isAdopted: z.literal(true), authorizedNetworks, ...adopted }),
      ],
      "must be a structure, such as {cidr: 10.0.0.0/16}",
    ),
  );
}

const gke = {
  controlPlaneCidr: cidr.default("10.49.0.0/28"),
  /** Exposes the Kubernetes API at a public address. Without one, clients use Google's DNS endpoint. */
  publicEndpoint: z.boolean().default(true),
};
const inProject = (kind: string) =>
  z.string().regex(new RegExp(`^projects/[^/]+/.*${kind}/[^/]+$`), `must be projects/PROJECT/.../${kind}/NAME`);

export const GkeNetwork = networkSchema(
  {
    ...gke,
    /** The addresses of nodes. */
    cidr: cidr.default("10.40.0.0/16"),
    podCidr: cidr.default("10.44.0.0/14"),
    serviceCidr: cidr.default("10.48.0.0/20"),
    /** The addresses of Google's proxies, from which internal load balancers call pods. */
    proxyCidr: cidr.default("10.50.0.0/23"),
  },
  {
    ...gke,
    vpc: z.strictObject({
      network: inProject("networks"),
      subnetwork: inProject("subnetworks"),
      /** The names of the subnetwork's secondary ranges. */
      podRange: z.string(),
      serviceRange: z.string(),
    }),
  },
);

export const EksNetwork = networkSchema(
  {
    /** The addresses of nodes and pods. */
    cidr: cidr.default("10.40.0.0/16"),
    publicEndpoint: z
      .literal(
        true,
        "must be true if the stack creates its network: a private endpoint is reachable only from within it; name a vpc",
      )
      .default(true),
    /**
     * The zones; by default the first three that support EKS at the first `up`. Different zones require a new network and thus a new
     * cluster.
     */
    zones: z
      .array(z.string())
      .min(2, "must name at least two zones")
      .max(7, "must name at most seven zones")
      .optional(),
    /** A single gateway is cheaper; one per zone survives the loss of a zone. */
    natGateways: z.enum(["single", "perZone"]).default("single"),
  },
  {
    publicEndpoint: z.boolean().default(true),
    vpc: z.strictObject({
      id: z.string().regex(/^vpc-/, "must be the id of a VPC"),
      /** The subnets of nodes, with a route to the internet. */
      privateSubnetIds: z.array(z.string()).min(2, "must name at least two subnets, in two zones"),
      /** The subnets of load balancers. */
      publicSubnetIds: z.array(z.string()).default([]),
    }),
  },
);

/**
 * Returns the addresses that may call the Kubernetes API from outside of its network. Without any, the providers of both
 * clouds would keep those of the last `up`, which for a private endpoint are none.
 */
export function openNetworks(network: {
  readonly publicEndpoint: boolean;
  readonly authorizedNetworks: readonly string[];
}): string[] {
  const { publicEndpoint, authorizedNetworks: named } = network;
  return publicEndpoint && named.length === 0 ? ["0.0.0.0/0"] : [...named];
}
