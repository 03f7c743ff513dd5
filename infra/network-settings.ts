import { z } from "zod";
import { cidr, isMap } from "./setting-types.ts";

/** From where the public endpoint may be called; empty is from everywhere. */
const authorizedNetworks = z.array(cidr).default([]);

/** A network that names a `vpc` is one that is there; what is asked of one that is made has no meaning then. */
function madeOrAdopted<Made extends z.ZodRawShape, Adopted extends z.ZodRawShape>(made: Made, adopted: Adopted) {
  return z.preprocess(
    (given) => (isMap(given) ? { ...given, isAdopted: "vpc" in given } : given),
    z.discriminatedUnion(
      "isAdopted",
      [
        z.strictObject({ isAdopted: z.literal(false), authorizedNetworks, ...made }),
        z.strictObject({ isAdopted: z.literal(true), authorizedNetworks, ...adopted }),
      ],
      "must be a structure, such as {cidr: 10.0.0.0/16}",
    ),
  );
}

const gke = {
  controlPlaneCidr: cidr.default("10.49.0.0/28"),
  /** Whether the Kubernetes API has an address that the internet can reach; without it there is Google's DNS endpoint. */
  publicEndpoint: z.boolean().default(true),
};
const inProject = (kind: string) =>
  z.string().regex(new RegExp(`^projects/[^/]+/.*${kind}/[^/]+$`), `must be projects/PROJECT/.../${kind}/NAME`);

export const GkeNetwork = madeOrAdopted(
  {
    ...gke,
    /** Addresses of nodes. */
    cidr: cidr.default("10.40.0.0/16"),
    podCidr: cidr.default("10.44.0.0/14"),
    serviceCidr: cidr.default("10.48.0.0/20"),
  },
  {
    ...gke,
    vpc: z.strictObject({
      network: inProject("networks"),
      subnetwork: inProject("subnetworks"),
      /** Names of the subnetwork's secondary ranges. */
      podRange: z.string(),
      serviceRange: z.string(),
    }),
  },
);

export const EksNetwork = madeOrAdopted(
  {
    /** Addresses of nodes and of pods. */
    cidr: cidr.default("10.40.0.0/16"),
    publicEndpoint: z
      .literal(
        true,
        "must be true where the stack makes its network: a private endpoint is reachable only from within it; name a vpc",
      )
      .default(true),
    /** By default the first three that EKS can be in. Another set is another network, and so another cluster. */
    zones: z
      .array(z.string())
      .min(2, "must name two zones at least")
      .max(7, "must name seven zones at most")
      .optional(),
    /** One gateway is cheaper, one a zone survives the loss of a zone. */
    natGateways: z.enum(["single", "perZone"]).default("single"),
  },
  {
    publicEndpoint: z.boolean().default(true),
    vpc: z.strictObject({
      id: z.string().regex(/^vpc-/, "must be the id of a VPC"),
      /** Of nodes, with a way out. */
      privateSubnetIds: z.array(z.string()).min(2, "must name two subnets at least, in two zones"),
      /** Of load balancers. */
      publicSubnetIds: z.array(z.string()).default([]),
    }),
  },
);
