import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";

export interface RoleArgs {
  readonly partition: string;
  /** The name; chosen by AWS when absent. */
  readonly name?: string;
  /** The cluster, with whose name the description begins: roles of several clusters are in one list. */
  readonly clusterName: string;
  readonly description: string;
  /** The trust policy as JSON. */
  readonly trust: pulumi.Input<string>;
  /** The rights of the role as JSON. */
  readonly policy?: pulumi.Input<string>;
  /** The names of AWS's managed policies with their paths. */
  readonly managedPolicies?: readonly string[];
}

/**
 * Creates a role with its policies.
 *
 * @returns The role, and the resources that must exist before it is used.
 */
export function createRole(
  name: string,
  { partition, name: roleName, clusterName, description, trust, policy, managedPolicies = [] }: RoleArgs,
  parent: pulumi.Resource,
): { readonly role: aws.iam.Role; readonly policies: readonly pulumi.Resource[] } {
  const role = new aws.iam.Role(
    name,
    {
      ...(roleName !== undefined && { name: roleName }),
      description: `${clusterName}: ${description}`,
      assumeRolePolicy: trust,
    },
    { parent },
  );
  const policies: pulumi.Resource[] = managedPolicies.map(
    (each) =>
      new aws.iam.RolePolicyAttachment(
        `${name}-${each.split("/").at(-1)}`,
        { role: role.name, policyArn: `arn:${partition}:iam::aws:policy/${each}` },
        { parent },
      ),
  );
  if (policy !== undefined) policies.push(new aws.iam.RolePolicy(name, { role: role.id, policy }, { parent }));
  return { role, policies };
}
