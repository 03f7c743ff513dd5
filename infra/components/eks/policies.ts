/** The policy documents of the EKS variant: the principals that may assume a role, and the rights of a role. */

import { userOfAccount } from "@tiltyard/platform";
import type { EksConfig } from "../../config.ts";
import type { EksAccount } from "./eks-account.ts";

export interface Statement {
  readonly Effect: "Allow";
  readonly Action: readonly string[];
  readonly Resource?: string | readonly string[];
  readonly Principal?:
    | { readonly AWS: readonly string[] }
    | { readonly Federated: string }
    | { readonly Service: string };
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Returns the document as JSON. */
export function policyOf(...statements: readonly Statement[]): string {
  return JSON.stringify({ Version: "2012-10-17", Statement: statements });
}

/** Allows users and roles to assume a role. */
export function trustPrincipals(principals: readonly string[]): string {
  return policyOf({ Effect: "Allow", Principal: { AWS: principals }, Action: ["sts:AssumeRole"] });
}

/**
 * Allows only one service account of Kubernetes to assume a role, by the token of its pods.
 *
 * @param provider The ARN of the cluster's OIDC provider, and its URL with or without a scheme.
 */
export function trustServiceAccount(
  provider: { readonly arn: string; readonly url: string },
  namespace: string,
  serviceAccount: string,
): string {
  const issuer = provider.url.replace(/^https:\/\//, "");
  return policyOf({
    Effect: "Allow",
    Principal: { Federated: provider.arn },
    Action: ["sts:AssumeRoleWithWebIdentity"],
    Condition: {
      StringEquals: {
        [`${issuer}:aud`]: "sts.amazonaws.com",
        [`${issuer}:sub`]: userOfAccount(namespace, serviceAccount),
      },
    },
  });
}

/** Allows a service of AWS to assume a role. */
export function trustService(service: string): string {
  return policyOf({ Effect: "Allow", Principal: { Service: service }, Action: ["sts:AssumeRole"] });
}

export const describeCluster = (clusterArn: string): Statement => ({
  Effect: "Allow",
  Action: ["eks:DescribeCluster"],
  Resource: clusterArn,
});

export const accessCluster = (clusterArn: string): Statement => ({
  Effect: "Allow",
  Action: ["eks:DescribeCluster", "eks:AccessKubernetesApi"],
  Resource: clusterArn,
});

/**
 * Returns the rights to list the bucket and to get, put, delete and head its objects. S3 has no action for a head
 * request, which needs the right to get.
 *
 * @param prefix The folder of the bucket with the tables, with a trailing slash; empty for the whole bucket.
 */
export const useBucket = (bucketArn: string, prefix: string): readonly Statement[] => [
  { Effect: "Allow", Action: ["s3:ListBucket"], Resource: bucketArn },
  {
    Effect: "Allow",
    Action: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
    Resource: `${bucketArn}/${prefix}*`,
  },
];

/**
 * Returns the rights of the cluster autoscaler. The describing actions support no narrower resource; the changing ones
 * are restricted to the groups of this cluster.
 */
export function autoscalerStatements(args: {
  readonly config: Pick<EksConfig, "clusterName" | "region">;
  readonly account: EksAccount;
  readonly clusterArn: string;
}): readonly Statement[] {
  const { config, account, clusterArn } = args;
  return [
    {
      Effect: "Allow",
      Action: [
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeAutoScalingInstances",
        "autoscaling:DescribeLaunchConfigurations",
        "autoscaling:DescribeScalingActivities",
        "ec2:DescribeImages",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeLaunchTemplateVersions",
        "ec2:GetInstanceTypesFromInstanceRequirements",
      ],
      Resource: "*",
    },
    {
      Effect: "Allow",
      Action: ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"],
      Resource: `arn:${account.partition}:autoscaling:${config.region}:${account.id}:autoScalingGroup:*:autoScalingGroupName/eks-*`,
      Condition: { StringEquals: { [`aws:ResourceTag/k8s.io/cluster-autoscaler/${config.clusterName}`]: "owned" } },
    },
    {
      Effect: "Allow",
      Action: ["eks:DescribeNodegroup"],
      Resource: `${clusterArn.replace(":cluster/", ":nodegroup/")}/*`,
    },
  ];
}
