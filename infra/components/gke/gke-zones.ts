import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";

/**
 * The zones of a region that have a machine type. A pool whose type is missing in one of its zones is refused as a
 * whole. A type of a family with GPUs (a2, a3, g2, ...) is where its GPUs are.
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

/** Machines made to measure are in no list; the standard ones of their family are, and they are in the same zones. */
function listedType(machineType: string): string {
  const [, family] = /^(?:([a-z0-9]+)-)?custom-/.exec(machineType) ?? [];
  return machineType.includes("custom-") ? `${family ?? "n1"}-standard-2` : machineType;
}
