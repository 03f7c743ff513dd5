import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { EksConfig } from "../../config.ts";

export interface EksAccount {
  readonly id: string;
  /** The partition in ARNs: `aws`, or another one in GovCloud and China. */
  readonly partition: string;
}

/** Returns the domain of a partition's services. */
export function domainOf(partition: string): string {
  return partition === "aws-cn" ? "amazonaws.com.cn" : "amazonaws.com";
}

/**
 * Looks up the account and the caller that creates the stack.
 *
 * @throws RunError if `adminPrincipals` does not include the caller, which the kubeconfig would lock out.
 */
export async function findEksAccount({ adminPrincipals, credentials }: EksConfig): Promise<EksAccount> {
  const { accountId, arn } = await aws.getCallerIdentity();
  const [, partition = "aws"] = arn.split(":");
  // `aws eks get-token` does not assume the role that only the provider assumes.
  const isAdmitted = adminPrincipals.length === 0 || credentials.roleArn !== undefined;
  if (!isAdmitted && !adminPrincipals.some((principal) => isSame(principal, arn, accountId)))
    throw new pulumi.RunError(`adminPrincipals: must name you as well, or this stack locks you out: ${arn}`);
  return { id: accountId, partition };
}

/**
 * Reports whether a principal is the caller. A session of a role contains the role's name without its path:
 * `arn:aws:sts::ACCOUNT:assumed-role/NAME/SESSION`.
 */
function isSame(principal: string, callerArn: string, accountId: string): boolean {
  const [, , , , account, resource = ""] = principal.split(":");
  if (account !== accountId) return false;
  const [, , , , , caller = ""] = callerArn.split(":");
  const [kind, role] = caller.split("/");
  if (kind === "assumed-role") return resource === "root" || resource.split("/").at(-1) === role;
  return resource === "root" || principal === callerArn;
}
