import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { AccountContext } from "./gke-accounts.ts";

/** A part of Google that encrypts something of the stack. */
export type KeyUser = "storage" | "compute" | "container" | "sqladmin";

export interface GkeKeyArgs extends AccountContext {
  readonly encryptionKey: string | undefined;
  readonly projectId: string;
  readonly users: readonly KeyUser[];
}

/**
 * Lets those parts of Google that encrypt something of the stack use the key, each as its own account. The rights stay
 * when the stack goes or gets another key: a bucket that is kept needs them, and so do other stacks of the project,
 * whose accounts these are too.
 *
 * @returns The key, known when they may use it; undefined without one.
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

/** The account as which a part of Google works in a project. That of Cloud SQL is there when it is asked for. */
function agentOf(name: string, user: KeyUser, { project, projectId, parent }: GkeKeyArgs): pulumi.Input<string> {
  if (user === "storage") return gcp.storage.getProjectServiceAccountOutput({ project }, { parent }).emailAddress;
  if (user === "sqladmin")
    return new gcp.projects.ServiceIdentity(name, { project, service: "sqladmin.googleapis.com" }, { parent }).email;
  const domains = { compute: "compute-system", container: "container-engine-robot" };
  const { number } = gcp.organizations.getProjectOutput({ projectId: project.apply(() => projectId) }, { parent });
  return pulumi.interpolate`service-${number}@${domains[user]}.iam.gserviceaccount.com`;
}
