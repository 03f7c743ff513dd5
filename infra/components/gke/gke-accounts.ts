import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { TeamClientArgs } from "../../cluster.ts";
import type { GkeConfig } from "../../config.ts";
import type { GkeBucket } from "./gke-bucket.ts";

/** The dependencies of accounts, including the project, which is known when its services are enabled. */
export interface AccountDeps {
  readonly parent: pulumi.Resource;
  readonly project: pulumi.Output<string>;
  readonly clusterName: string;
}

/** The maximum length of a display name. */
const displayNameMax = 100;
/** The maximum length of an id without its suffix, which has a dash and 8 characters. The whole has at most 30. */
const idPrefixMax = 21;

/**
 * Creates an account. Its id has a suffix, because an id is reserved for 30 days after the deletion of an account. Names
 * of teams may be longer than an id. Accounts of several clusters are in one list, so the display name begins with the
 * cluster.
 */
export function createAccount(
  name: string,
  purpose: string,
  { parent, project, clusterName }: AccountDeps,
): gcp.serviceaccount.Account {
  const displayName = `${clusterName}: ${purpose}`.slice(0, displayNameMax);
  const suffix = new random.RandomId(name, { byteLength: 4 }, { parent });
  const accountId = pulumi.interpolate`${name.slice(0, idPrefixMax)}-${suffix.hex}`;
  return new gcp.serviceaccount.Account(name, { project, accountId, displayName }, { parent });
}

/**
 * Creates the account of nodes, which may write logs and metrics and pull images of the project's registries, but
 * access no data.
 */
export function createNodeAccount(name: string, deps: AccountDeps): gcp.serviceaccount.Account {
  const account = createAccount(name, "nodes", deps);
  grant(`${name}-role`, "roles/container.defaultNodeServiceAccount", account, deps);
  grant(`${name}-images`, "roles/artifactregistry.reader", account, deps);
  return account;
}

export interface ClientAccountArgs extends TeamClientArgs {
  /** The name of the team; undefined for the clients of the whole stack. */
  readonly team: string | undefined;
  readonly bucket: GkeBucket;
}

/**
 * Creates the account that programs impersonate to create Ray clusters, and grants that right to principals. Each grant
 * is named after its member. If it were named after its position, a grant with a new position would be created before
 * the deletion of the former one, which would remove it in Google.
 */
export function createClientAccount(
  name: string,
  { team, principals, folder, bucket }: ClientAccountArgs,
  deps: AccountDeps,
): gcp.serviceaccount.Account {
  const account = createAccount(name, `creates Ray clusters${team === undefined ? "" : ` of ${team}`}`, deps);
  // This role allows clients to find the cluster and sign in. The role in the namespace determines their rights there.
  grant(`${name}-cluster`, "roles/container.clusterViewer", account, deps);
  bucket.allowObjects(name, account.email, deps.parent, folder);
  for (const member of new Set(principals))
    new gcp.serviceaccount.IAMMember(
      `${name}-principal-${member}`,
      { serviceAccountId: account.name, role: "roles/iam.serviceAccountTokenCreator", member },
      { parent: deps.parent },
    );
  return account;
}

/**
 * Grants the principals that run `pulumi up` the administration of the project's clusters, in addition to the creator
 * of the stack.
 */
export function grantAdmins(name: string, { adminPrincipals }: GkeConfig, { parent, project }: AccountDeps): void {
  for (const member of new Set(adminPrincipals))
    new gcp.projects.IAMMember(`${name}-${member}`, { project, role: "roles/container.admin", member }, { parent });
}

function grant(
  name: string,
  role: string,
  { email }: gcp.serviceaccount.Account,
  { parent, project }: AccountDeps,
): void {
  new gcp.projects.IAMMember(name, { project, role, member: pulumi.interpolate`serviceAccount:${email}` }, { parent });
}
