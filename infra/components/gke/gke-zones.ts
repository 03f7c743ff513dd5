import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { GkeConfig } from "../../config.ts";
import type { NodePool } from "../../node-pools.ts";

/**
 * Returns the zones of a region that offer a machine type. A pool is rejected if one of its zones lacks the type. A
 * type of a family with GPUs (a2, a3, g2, ...) is offered in the zones of its GPUs.
 */
export function zonesOffering(
  machineType: string,
  { region, project }: { readonly region: string; readonly project: pulumi.Output<string> },
  parent: pulumi.Resource,
): pulumi.Output<string[]> {
  const inIt = { parent };
  const filter = filterOf(machineType);
  return gcp.compute.getZonesOutput({ region, project }, inIt).names.apply((zones) =>
    pulumi
      .all(
        zones.map((zone) =>
          gcp.compute
            .getMachineTypesOutput({ zone, project, filter }, inIt)
            .machineTypes.apply((types) => (types.length > 0 ? [zone] : [])),
        ),
      )
      .apply((found) => {
        const offering = found.flat();
        if (offering.length > 0) return offering;
        throw new pulumi.RunError(`nodePools: no zone of ${region} offers the machine type ${machineType}`);
      }),
  );
}

/**
 * Returns the names of the optional pools whose machine no zone of the region offers. The answer is empty while the API is
 * still disabled in a new project; the pool is then reported when it is created, and left out by the next `up`.
 */
export async function findMissingPools({ nodePools, region, project }: GkeConfig): Promise<readonly string[]> {
  const optional = nodePools.filter((pool) => pool.optional);
  if (optional.length === 0) return [];
  try {
    const { names } = await gcp.compute.getZones({ region, project });
    const isOffered = async ({ machineTypes: [machineType] }: NodePool) => {
      const filter = filterOf(machineType);
      const found = await Promise.all(names.map((zone) => gcp.compute.getMachineTypes({ zone, project, filter })));
      return found.some(({ machineTypes }) => machineTypes.length > 0);
    };
    const missing = await Promise.all(optional.map(async (pool) => ((await isOffered(pool)) ? [] : [pool.name])));
    return missing.flat();
  } catch {
    return [];
  }
}

function filterOf(machineType: string): string {
  return `name = "${listedType(machineType)}"`;
}

/**
 * Returns the listed type for a machine type. Custom machines are not listed, but the standard ones of their family are
 * in the same zones.
 */
function listedType(machineType: string): string {
  const [, family] = /^(?:([a-z0-9]+)-)?custom-/.exec(machineType) ?? [];
  return machineType.includes("custom-") ? `${family ?? "n1"}-standard-2` : machineType;
}
