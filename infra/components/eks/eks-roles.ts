import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { TeamClientArgs } from "../../cluster.ts";
import type { EksConfig } from "../../config.ts";
import { waitUntilAuthorized } from "./authorization.ts";
import { domainOf, type EksAccount } from "./eks-account.ts";
import type { EksBucket } from "./eks-bucket.ts";
import { importImages } from "./eks-image-cache.ts";
import { createRole } from "./iam-role.ts";
import { accessCluster, policyOf, trustPrincipals, trustService } from "./policies.ts";

/** The dependencies of roles. */
export interface RoleDeps {
  readonly parent: pulumi.Resource;
  readonly config: EksConfig;
  readonly account: EksAccount;
  readonly clusterName: pulumi.Output<string>;
  readonly clusterArn: pulumi.Output<string>;
}

/**
 * Creates the role of the nodes and the access entry that lets them join the cluster.
 *
 * @returns The role, and the resources that must exist as long as the nodes.
 */
export function createNodeRole(name: string, { account, config, clusterName, parent }: RoleDeps) {
  const { partition, id: accountId } = account;
  const { region } = config;
  const { role, policies } = createRole(
    name,
    {
      partition,
      clusterName: config.clusterName,
      description: "nodes",
      trust: trustService(`ec2.${domainOf(partition)}`),
      ...(config.imageCache !== undefined && {
        policy: policyOf(importImages({ partition, region, accountId, clusterName: config.clusterName })),
      }),
      managedPolicies: ["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"],
    },
    parent,
  );
  const entry = new aws.eks.AccessEntry(name, { clusterName, principalArn: role.arn, type: "EC2_LINUX" }, { parent });
  return { role, rights: [...policies, entry] };
}

/** The group of the stack's clients. Groups of teams have a colon, so no team can have this one. */
const clientGroup = "tiltyard-clients";

/**
 * Creates the role that programs assume to create Ray clusters.
 *
 * @returns The role's ARN, and its group in the cluster; without a group it is an administrator of the cluster.
 */
export function createClientRole(name: string, bucket: EksBucket, deps: RoleDeps) {
  const { clientRole: roleName, clientPrincipals: principals, clientAccess } = deps.config;
  const args = { roleName, description: "creates Ray clusters", principals, bucket, folder: "" };
  const role = createRoleOfClients(name, args, deps);
  if (clientAccess === "namespace") return { group: clientGroup, arn: joinGroup(name, role, clientGroup, deps) };
  grantAdmin(name, role, deps);
  return { group: undefined, arn: role.arn };
}

/**
 * Creates the role that clients of a team assume. On the cluster, it belongs to a group with rights in Kubernetes and
 * is not an administrator.
 *
 * @returns The role's ARN, which is known when the role can be used on the cluster, and the group.
 */
export function createTeamRole(
  name: string,
  { team, principals, folder, bucket }: TeamClientArgs & { readonly team: string; readonly bucket: EksBucket },
  deps: RoleDeps,
) {
  const roleName = `${deps.config.clientRole}-${team}`;
  const args = { roleName, description: `creates Ray clusters of ${team}`, principals, bucket, folder };
  const role = createRoleOfClients(name, args, deps);
  const group = `tiltyard:${team}`;
  return { group, roleName: joinGroup(name, role, group, deps) };
}

/** Adds a role to a group of the cluster. @returns The role's ARN, which is known when the role is in the group. */
function joinGroup(
  name: string,
  { arn: principalArn }: aws.iam.Role,
  group: string,
  { clusterName, parent }: RoleDeps,
): pulumi.Output<string> {
  const entry = new aws.eks.AccessEntry(
    name,
    { clusterName, principalArn, type: "STANDARD", kubernetesGroups: [group] },
    { parent },
  );
  return pulumi.all([principalArn, entry.id]).apply(([arn]) => arn);
}

interface RoleOfClients extends TeamClientArgs {
  readonly roleName: string;
  readonly description: string;
  readonly bucket: EksBucket;
}

function createRoleOfClients(
  name: string,
  { roleName, description, principals, bucket, folder }: RoleOfClients,
  deps: RoleDeps,
): aws.iam.Role {
  const { config, account, clusterArn, parent } = deps;
  const { role } = createRole(
    name,
    {
      partition: account.partition,
      name: roleName,
      clusterName: config.clusterName,
      description,
      trust: trustPrincipals(principals),
      policy: pulumi
        .all([clusterArn, bucket.use(folder)])
        .apply(([itsArn, statements]) => policyOf(accessCluster(itsArn), ...statements)),
    },
    parent,
  );
  return role;
}

/**
 * Creates the role for all principals that run `pulumi up`. By default, EKS admits only the creator of the cluster.
 *
 * @param kubeconfigFor Returns the kubeconfig of a role.
 * @returns The role's ARN, known when the cluster authorizes it; undefined without `adminPrincipals`.
 */
export function createAdminRole(
  name: string,
  deps: RoleDeps,
  kubeconfigFor: (role: pulumi.Output<string>) => pulumi.Output<string>,
): pulumi.Output<string> | undefined {
  const { config, account, clusterArn, parent } = deps;
  if (config.adminPrincipals.length === 0) return undefined;
  const { role } = createRole(
    name,
    {
      partition: account.partition,
      clusterName: config.clusterName,
      description: "administers the cluster",
      trust: trustPrincipals(config.adminPrincipals),
      policy: clusterArn.apply((arn) => policyOf(accessCluster(arn))),
    },
    parent,
  );
  const kubeconfig = new Promise<string>((resolve) => kubeconfigFor(role.arn).apply(resolve));
  const authorized = new pulumi.ResourceHook(`${name}-authorized`, async () => waitUntilAuthorized(await kubeconfig));
  const association = grantAdmin(name, role, deps, { afterCreate: [authorized] });
  return pulumi.all([role.arn, association.id]).apply(([arn]) => arn);
}

function grantAdmin(
  name: string,
  role: aws.iam.Role,
  { account, clusterName, parent }: RoleDeps,
  hooks: pulumi.ResourceHookBinding = {},
) {
  const entry = new aws.eks.AccessEntry(name, { clusterName, principalArn: role.arn, type: "STANDARD" }, { parent });
  return new aws.eks.AccessPolicyAssociation(
    name,
    {
      clusterName,
      principalArn: entry.principalArn,
      policyArn: `arn:${account.partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy`,
      accessScope: { type: "cluster" },
    },
    { parent, hooks },
  );
}
