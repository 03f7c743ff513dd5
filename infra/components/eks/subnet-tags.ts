/** The tags by which the controller of load balancers finds the subnets of a cluster. */

export function publicSubnetTags(clusterName: string): Record<string, string> {
  return { [clusterTag(clusterName)]: "shared", "kubernetes.io/role/elb": "1" };
}

export function privateSubnetTags(clusterName: string): Record<string, string> {
  return { [clusterTag(clusterName)]: "shared", "kubernetes.io/role/internal-elb": "1" };
}

function clusterTag(clusterName: string): string {
  return `kubernetes.io/cluster/${clusterName}`;
}
