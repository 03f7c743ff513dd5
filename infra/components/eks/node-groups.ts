import type * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { EksConfig } from "../../config.ts";
import type { NodePool } from "../../node-pools.ts";
import type { EksNetwork } from "./eks-network.ts";
import type { EksZones } from "./eks-zones.ts";
import { NodeGroup, type NodeGroupArgs } from "./node-group.ts";

export interface NodeGroupsArgs extends Pick<NodeGroupArgs, "cluster" | "role" | "needs"> {
  readonly config: EksConfig;
  readonly zones: EksZones;
  readonly vpc: EksNetwork;
  readonly role: aws.iam.Role;
  readonly parent: pulumi.Resource;
}

/**
 * Creates the groups of each pool. A pool of heads or controllers has one group per zone: AWS balances the nodes of a
 * group with several zones regardless of disruption budgets, which would end a Ray cluster with its head. A volume of a
 * controller belongs to one zone, and the autoscaler cannot choose the zone of a group's next node.
 */
export function createNodeGroups(name: string, args: NodeGroupsArgs): NodeGroup[] {
  const { config, zones, vpc, cluster, role, needs, parent } = args;
  const create = (groupName: string, pool: NodePool, its: readonly string[], min: number) =>
    new NodeGroup(
      groupName,
      { config, pool, cluster, role, needs, subnetIds: vpc.privateSubnetsIn(its), min, max: pool.max },
      { parent },
    );
  return config.nodePools.flatMap((pool) => {
    const offering = zones.pools.get(pool.name) ?? [];
    if (pool.role !== "core" && pool.role !== "head") return [create(`${name}-${pool.name}`, pool, offering, pool.min)];
    const its = isInOneZone(config, pool) ? offering.slice(0, 1) : offering;
    return its.map((zone, index) =>
      create(
        // The names of groups of heads depend on the zone alone: with another list of zones, groups in zones that remain stay.
        index === 0 && pool.role === "core" ? `${name}-${pool.name}` : `${name}-${pool.name}-${zone}`,
        pool,
        [zone],
        Math.floor(pool.min / its.length) + (index < pool.min % its.length ? 1 : 0),
      ),
    );
  });
}

/**
 * Reports whether a core pool needs only one zone. SQLite's volume binds the catalog to its zone, so nodes elsewhere
 * would be useless.
 */
function isInOneZone({ catalog }: EksConfig, { role, zones }: NodePool): boolean {
  return role === "core" && zones === undefined && catalog.enabled && catalog.database === "sqlite";
}
