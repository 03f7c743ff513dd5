import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { CloudServices } from "../../cluster.ts";
import type { ExistingEksConfig } from "../../config.ts";
import { EksServices } from "./eks-services.ts";
import { findRanges } from "./eks-zones.ts";

/**
 * Looks up AWS's services for an EKS cluster outside the stack: roles for its pods, a bucket, a registry.
 *
 * @throws RunError if the cluster has no OIDC provider in IAM, without which pods cannot assume roles.
 */
export async function findExistingEks(
  name: string,
  config: ExistingEksConfig,
): Promise<(parent: pulumi.Resource) => CloudServices> {
  const { clusterName } = config;
  const { arn, identities, vpcConfig } = await aws.eks.getCluster({ name: clusterName });
  const url = identities[0]?.oidcs[0]?.issuer ?? "";
  const [provider, cidrs] = await Promise.all([
    aws.iam.getOpenIdConnectProvider({ url }).catch((cause: unknown) => {
      throw new pulumi.RunError(
        `clusterName: ${clusterName} has no OIDC provider in IAM (${cause}). Create it: ` +
          `eksctl utils associate-iam-oidc-provider --cluster ${clusterName} --approve`,
      );
    }),
    findRanges(vpcConfig.vpcId),
  ]);
  const [, partition = "aws"] = arn.split(":");
  const oidcProvider = pulumi.output({ arn: provider.arn, url });
  const args = { config, partition, clusterArn: pulumi.output(arn), oidcProvider, cidrs };
  return (parent) => new EksServices(name, args, parent);
}
