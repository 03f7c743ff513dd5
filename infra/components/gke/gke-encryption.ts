import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { AccountDeps } from "./gke-accounts.ts";

/** A service of Google that encrypts resources of the stack. */
export type KeyUser = "storage" | "compute" | "container" | "sqladmin";

export interface GkeKeyArgs extends AccountDeps {
  readonly encryptionKey: string | undefined;
  readonly projectId: string;
  readonly users: readonly KeyUser[];
}

/**
 * Allows the services of Google that encrypt resources of the stack to use the key, each with its own account. The
 * rights remain when the stack is destroyed or receives another key, because a retained bucket and other stacks of the
 * project, which share these accounts, need them.
 *
 * @returns The key, which is known when the services may use it; undefined without one.
 */
export function createGkeKey(name: string, args: GkeKeyArgs): pulumi.Output<string> | undefined {
  const { encryptionKey, users, parent } = args;
  if (encryptionKey === undefined) return undefined;
  const grants = users.map(
    (user) =>
      new gcp.kms.CryptoKeyIAMMember(
        `${name}-${user}`,
        {
          cryptoKeyId: encryptionKey,
          role: "roles/cloudkms.cryptoKeyEncrypterDecrypter",
          member: pulumi.interpolate`serviceAccount:${agentOf(`${name}-${user}`, user, args)}`,
        },
        { parent, retainOnDelete: true },
      ).id,
  );
  return pulumi.all(grants).apply(() => encryptionKey);
}

/** Returns the account of a service of Google in a project. The account of Cloud SQL is created on request. */
function agentOf(name: string, user: KeyUser, { project, projectId, parent }: GkeKeyArgs): pulumi.Input<string> {
  if (user === "storage") return gcp.storage.getProjectServiceAccountOutput({ project }, { parent }).emailAddress;
  if (user === "sqladmin")
    return new gcp.projects.ServiceIdentity(name, { project, service: "sqladmin.googleapis.com" }, { parent }).email;
  const domains = { compute: "compute-system", container: "container-engine-robot" };
  const { number } = gcp.organizations.getProjectOutput({ projectId: project.apply(() => projectId) }, { parent });
  return pulumi.interpolate`service-${number}@${domains[user]}.iam.gserviceaccount.com`;
}
