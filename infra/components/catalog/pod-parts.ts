/** The common parts of the containers in the catalog's pod. */
import type * as pulumi from "@pulumi/pulumi";

/** The id of the user `node` of the image. */
export const userId = 1000;

/** The volume of the catalog's database in the pod. */
export const dataVolume = { name: "data", path: "/data", databaseFile: "/data/catalog.sqlite" } as const;

/** The security context that the level `restricted` of Pod Security requires, with a read-only file system. */
export const containerSecurity = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ["ALL"] },
};

/** Returns the references to existing secrets with variables. */
export function secretsOf(...names: readonly (pulumi.Input<string> | undefined)[]) {
  return names.filter((name) => name !== undefined).map((name) => ({ secretRef: { name } }));
}
