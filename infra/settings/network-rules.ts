import { addressesOf } from "./setting-types.ts";
import type { Reading, Settings } from "./settings.ts";

/** Returns the problems of a new network that clouds would reject. */
export function problemsOfNetwork(settings: Reading<"network">): string[] {
  if (settings.variant === "eks") return problemsOnAws(settings.network);
  if (settings.variant === "gke") return problemsOnGoogle(settings.network);
  return [];
}

/**
 * Returns the problems on AWS. The prefix of a VPC has at least 16 bits, that of a subnet at most 28. Public subnets
 * are a 16th of the VPC, or a 64th with more than three zones.
 */
function problemsOnAws(network: (Settings & { variant: "eks" })["network"]): string[] {
  const problems =
    network.publicEndpoint || network.authorizedNetworks.length === 0
      ? []
      : ["network.authorizedNetworks: must not be set with publicEndpoint: false, which has no public address"];
  if (network.isAdopted) return problems;
  const [longest, zones] = (network.zones?.length ?? 3) <= 3 ? [24, "three zones"] : [22, "more than three zones"];
  const { length } = addressesOf(network.cidr);
  if (length < 16 || length > longest) problems.push(`network.cidr: must be from /16 to /${longest} with ${zones}`);
  return problems;
}

/** The longest prefix of a proxy-only subnet. */
const proxyBitsMax = 26;

function problemsOnGoogle(network: (Settings & { variant: "gke" })["network"]): string[] {
  const { controlPlaneCidr } = network;
  const problems =
    addressesOf(controlPlaneCidr).length === 28 ? [] : ["network.controlPlaneCidr: must be a /28, which GKE requires"];
  const ranges = network.isAdopted
    ? []
    : Object.entries({
        cidr: network.cidr,
        podCidr: network.podCidr,
        serviceCidr: network.serviceCidr,
        proxyCidr: network.proxyCidr,
        controlPlaneCidr,
      });
  if (!network.isAdopted && addressesOf(network.proxyCidr).length > proxyBitsMax)
    problems.push(`network.proxyCidr: must have a prefix of at most /${proxyBitsMax}, which Google requires`);
  for (const [index, [name, range]] of ranges.entries()) {
    const [other, its = ""] = ranges.slice(0, index).find(([, each]) => overlap(range, each)) ?? [];
    if (other !== undefined) problems.push(`network.${name}: overlaps network.${other}: ${range}, ${its}`);
  }
  return problems;
}

function overlap(one: string, other: string): boolean {
  const [a, b] = [addressesOf(one), addressesOf(other)];
  return a.first <= b.last && b.first <= a.last;
}
