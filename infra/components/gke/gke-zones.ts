import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";

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
  const listed = listedType(machineType);
  return gcp.compute.getZonesOutput({ region, project }, inIt).names.apply((zones) =>
    pulumi
      .all(
        zones.map((zone) =>
          gcp.compute
            .getMachineTypesOutput({ zone, project, filter: `name = "${listed}"` }, inIt)
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
 * Returns the listed type for a machine type. Custom machines are not listed, but the standard ones of their family are
 * in the same zones.
 */
function listedType(machineType: string): string {
  const [, family] = /^(?:([a-z0-9]+)-)?custom-/.exec(machineType) ?? [];
  return machineType.includes("custom-") ? `${family ?? "n1"}-standard-2` : machineType;
}
