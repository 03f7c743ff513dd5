/** The policy documents of the EKS variant: which principals may assume a role, and what a role may do. */

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

/** @returns The document as JSON. */
export function policyOf(...statements: readonly Statement[]): string {
  return JSON.stringify({ Version: "2012-10-17", Statement: statements });
}

/** These users and roles may take a role; requirements.md 5.1, variant B, 2. */
export function trustPrincipals(principals: readonly string[]): string {
  return policyOf({ Effect: "Allow", Principal: { AWS: principals }, Action: ["sts:AssumeRole"] });
}

/**
 * One service account of Kubernetes alone may assume a role, by the token of its pods;
 * requirements.md 5.1, variant B, 5.
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
        [`${issuer}:sub`]: `system:serviceaccount:${namespace}:${serviceAccount}`,
      },
    },
  });
}

/** A service of AWS may take a role. */
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
 * List the bucket; get, put, delete and head its objects. There is no action to head an
 * object: S3 asks for the right to get it.
 *
 * @param prefix The folder of the bucket in which the tables are, ending in a slash; or empty.
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
 * What the cluster autoscaler does. What AWS offers to describe has no narrower resource;
 * what changes something is held to the groups of this cluster.
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
