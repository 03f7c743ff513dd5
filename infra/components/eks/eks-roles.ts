import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { TeamClientArgs } from "../../cluster.ts";
import type { EksConfig } from "../../config.ts";
import type { EksAccount } from "./eks-account.ts";
import type { EksBucket } from "./eks-bucket.ts";
import { importImages } from "./eks-image-cache.ts";
import { createRole } from "./iam-role.ts";
import { accessCluster, policyOf, trustPrincipals, trustService } from "./policies.ts";

/** What roles are made with. */
export interface RoleContext {
  readonly parent: pulumi.Resource;
  readonly config: EksConfig;
  readonly account: EksAccount;
  readonly clusterName: pulumi.Output<string>;
  readonly clusterArn: pulumi.Output<string>;
}

/**
 * The role of the nodes, and what lets them join the cluster.
 *
 * @returns The role, and what must be there as long as nodes are.
 */
export function createNodeRole(
  name: string,
  { account, config, clusterName, parent }: RoleContext,
  cluster: pulumi.Resource,
) {
  const { partition, id: accountId } = account;
  const { region } = config;
  const { role, policies } = createRole(
    name,
    {
      partition,
      description: "Nodes of the cluster",
      trust: trustService("ec2.amazonaws.com"),
      ...(config.imageCache !== undefined && {
        policy: policyOf(importImages({ partition, region, accountId, clusterName: config.clusterName })),
      }),
      managedPolicies: ["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"],
    },
    parent,
  );
  const entry = new aws.eks.AccessEntry(
    name,
    { clusterName, principalArn: role.arn, type: "EC2_LINUX" },
    // The cluster's component once made it: on a stack of that time it is the same entry.
    { parent, aliases: [{ name: name.replace("-nodes", "-defaultNodeGroupInstanceRole"), parent: cluster }] },
  );
  return { role, rights: [...policies, entry] };
}

/** The role that programs take to make Ray clusters; requirements.md 5.1, variant B, 2 and 3. */
export function createClientRole(name: string, bucket: EksBucket, context: RoleContext): aws.iam.Role {
  const { clientRole: roleName, clientPrincipals: principals } = context.config;
  const role = createRoleOfClients(name, { roleName, principals, bucket, folder: "" }, context);
  makeAdmin(name, role, context);
  return role;
}

/**
 * The role that clients of a team take. On the cluster it is a group that has its rights from Kubernetes, and is no
 * administrator.
 *
 * @returns The role's ARN, known when it may be used on the cluster, and the group.
 */
export function createTeamRole(
  name: string,
  { team, principals, folder, bucket }: TeamClientArgs & { readonly team: string; readonly bucket: EksBucket },
  context: RoleContext,
) {
  const { config, clusterName, parent } = context;
  const args = { roleName: `${config.clientRole}-${team}`, principals, bucket, folder };
  const { arn } = createRoleOfClients(name, args, context);
  const group = `tiltyard:${team}`;
  const entry = new aws.eks.AccessEntry(
    name,
    { clusterName, principalArn: arn, type: "STANDARD", kubernetesGroups: [group] },
    { parent },
  );
  return { group, roleName: pulumi.all([arn, entry.id]).apply(([known]) => known) };
}

interface RoleOfClients extends TeamClientArgs {
  readonly roleName: string;
  readonly bucket: EksBucket;
}

function createRoleOfClients(
  name: string,
  { roleName, principals, bucket, folder }: RoleOfClients,
  context: RoleContext,
): aws.iam.Role {
  const { account, clusterArn, parent } = context;
  const { role } = createRole(
    name,
    {
      partition: account.partition,
      name: roleName,
      description: "Makes Ray clusters",
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
 * The role for all principals that run `pulumi up`: EKS itself lets in the cluster's creator alone.
 *
 * @returns The role's ARN, known when it may be used on the cluster; undefined when there are no `adminPrincipals`.
 */
export function createAdminRole(name: string, context: RoleContext): pulumi.Output<string> | undefined {
  const { config, account, clusterArn, parent } = context;
  if (config.adminPrincipals.length === 0) return undefined;
  const { role } = createRole(
    name,
    {
      partition: account.partition,
      description: "Administers the cluster",
      trust: trustPrincipals(config.adminPrincipals),
      policy: clusterArn.apply((arn) => policyOf(accessCluster(arn))),
    },
    parent,
  );
  const association = makeAdmin(name, role, context);
  return pulumi.all([role.arn, association.id]).apply(([arn]) => arn);
}

function makeAdmin(name: string, role: aws.iam.Role, { account, clusterName, parent }: RoleContext) {
  const entry = new aws.eks.AccessEntry(name, { clusterName, principalArn: role.arn, type: "STANDARD" }, { parent });
  return new aws.eks.AccessPolicyAssociation(
    name,
    {
      clusterName,
      principalArn: entry.principalArn,
      policyArn: `arn:${account.partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy`,
      accessScope: { type: "cluster" },
    },
    { parent },
  );
}
