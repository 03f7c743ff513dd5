import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { TeamClientArgs } from "../../cluster.ts";
import type { GkeConfig } from "../../config.ts";
import type { GkeBucket } from "./gke-bucket.ts";

/** What accounts are made with: the project, known when its services are on. */
export interface AccountContext {
  readonly parent: pulumi.Resource;
  readonly project: pulumi.Output<string>;
}

/** An account id has 30 characters at most, and is taken for 30 days after it was deleted: it gets a suffix. */
export function createAccount(
  name: string,
  displayName: string,
  { parent, project }: AccountContext,
): gcp.serviceaccount.Account {
  return new gcp.serviceaccount.Account(name, { project, displayName }, { parent });
}

/** Nodes write logs and metrics, and pull images of the project's own registries; no access to any data. */
export function createNodeAccount(name: string, context: AccountContext): gcp.serviceaccount.Account {
  const account = createAccount(name, "Nodes of the cluster", context);
  grant(`${name}-role`, "roles/container.defaultNodeServiceAccount", account, context);
  grant(`${name}-images`, "roles/artifactregistry.reader", account, context);
  return account;
}

export interface ClientAccountArgs extends TeamClientArgs {
  /** Undefined for those of the stack as a whole. */
  readonly team: string | undefined;
  readonly bucket: GkeBucket;
}

/**
 * The account that programs impersonate to make Ray clusters, and the principals that may do so. Each of their grants is
 * named by its member: by its place in the list, a grant that moves up is made before the one that was there is deleted,
 * and Google then has none. The places are aliases, because grants once were named so.
 */
export function createClientAccount(
  name: string,
  { team, principals, folder, bucket }: ClientAccountArgs,
  context: AccountContext,
): gcp.serviceaccount.Account {
  const account = createAccount(name, `Makes Ray clusters${team === undefined ? "" : ` of ${team}`}`, context);
  // Finds the cluster and signs in to it; what it may do there is the matter of its role in the namespace.
  grant(`${name}-cluster`, "roles/container.clusterViewer", account, context);
  bucket.allowObjects(name, account.email, context.parent, folder);
  for (const [index, member] of [...new Set(principals)].entries())
    new gcp.serviceaccount.IAMMember(
      `${name}-principal-${member}`,
      { serviceAccountId: account.name, role: "roles/iam.serviceAccountTokenCreator", member },
      { parent: context.parent, aliases: [{ name: `${name}-principal-${index}` }] },
    );
  return account;
}

/** Principals that run `pulumi up`, besides the creator of the stack: administrators of the project's clusters. */
export function grantAdmins(name: string, { adminPrincipals }: GkeConfig, { parent, project }: AccountContext): void {
  for (const [index, member] of [...new Set(adminPrincipals)].entries())
    new gcp.projects.IAMMember(
      `${name}-${member}`,
      { project, role: "roles/container.admin", member },
      { parent, aliases: [{ name: `${name}-${index}` }] },
    );
}

function grant(
  name: string,
  role: string,
  { email }: gcp.serviceaccount.Account,
  { parent, project }: AccountContext,
): void {
  new gcp.projects.IAMMember(name, { project, role, member: pulumi.interpolate`serviceAccount:${email}` }, { parent });
}
