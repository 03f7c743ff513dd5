import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { EksConfig } from "../../config.ts";

/** The names of the log groups of a cluster that exist. */
export type LogGroups = ReadonlySet<string>;

type Named = Pick<EksConfig, "clusterName">;

/** Returns the log group to which EKS writes the logs of the control plane. */
export function controlPlaneLogs({ clusterName }: Named): string {
  return `/aws/eks/${clusterName}/cluster`;
}

/** Returns the folder of the log groups to which CloudWatch's agent writes. */
export function agentLogs({ clusterName }: Named): string {
  return `/aws/containerinsights/${clusterName}/`;
}

/**
 * Looks up the log groups of a cluster. EKS and the agent write their last lines after a stack has deleted a group, which
 * creates it again; the next stack adopts it.
 */
export async function findLogGroups(config: Named): Promise<LogGroups> {
  const prefixes = [controlPlaneLogs(config), agentLogs(config)];
  const found = await Promise.all(
    prefixes.map((logGroupNamePrefix) => aws.cloudwatch.getLogGroups({ logGroupNamePrefix })),
  );
  return new Set(found.flatMap(({ logGroupNames }) => logGroupNames));
}

interface LogGroupArgs {
  /** The name of the group in AWS. */
  readonly name: string;
  readonly retentionInDays: number;
  readonly existing: LogGroups;
}

/** Creates a log group, or adopts one that exists. */
export function createLogGroup(
  name: string,
  { existing, ...group }: LogGroupArgs,
  parent: pulumi.Resource,
): aws.cloudwatch.LogGroup {
  return new aws.cloudwatch.LogGroup(name, group, { parent, ...(existing.has(group.name) && { import: group.name }) });
}
