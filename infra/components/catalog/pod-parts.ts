/** What the containers of the catalog's pod have in common. */
import type * as pulumi from "@pulumi/pulumi";

/** The user `node` of the image. */
export const userId = 1000;

/** Where the catalog keeps its database, in the pod. */
export const dataVolume = { name: "data", path: "/data", databaseFile: "/data/catalog.sqlite" } as const;

/** What Pod Security's level `restricted` asks for, and a file system that cannot be written. */
export const containerSecurity = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ["ALL"] },
};

/** Variables from secrets, as far as there are such. */
export function secretsOf(...names: readonly (pulumi.Input<string> | undefined)[]) {
  return names.filter((name) => name !== undefined).map((name) => ({ secretRef: { name } }));
}
