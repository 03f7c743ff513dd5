import { type AddonDeps, createAddon } from "./eks-addons.ts";
import { createRole } from "./iam-role.ts";
import { agentLogs, createLogGroup, type LogGroups } from "./log-groups.ts";
import type { NodeGroup } from "./node-group.ts";
import { trustServiceAccount } from "./policies.ts";

const logDays = 30;
/** The kinds of logs for which the agent writes to a group of its own. */
const logKinds = ["application", "dataplane", "host"] as const;

/**
 * Creates CloudWatch's agent, which stores the output of containers, because EKS itself does not. The log groups are
 * created here because the agent would create them without a retention period.
 */
export function createContainerLogs(
  name: string,
  deps: AddonDeps & { readonly logGroups: LogGroups },
  groups: readonly NodeGroup[],
): void {
  const { config, account, oidcProvider, logGroups, parent } = deps;
  if (!config.rayLogs) return;
  const logs = logKinds.map((kind) =>
    createLogGroup(
      kind === "application" ? name : `${name}-${kind}`,
      { name: `${agentLogs(config)}${kind}`, retentionInDays: logDays, existing: logGroups },
      parent,
    ),
  );
  const { role, policies } = createRole(
    name,
    {
      partition: account.partition,
      clusterName: config.clusterName,
      description: "stores the output of containers",
      trust: oidcProvider.apply((provider) => trustServiceAccount(provider, "amazon-cloudwatch", "cloudwatch-agent")),
      managedPolicies: ["CloudWatchAgentServerPolicy"],
    },
    parent,
  );
  // By default, the agent would also send the metrics of Container Insights and instrument applications, which costs
  // extra.
  const settings = {
    containerLogs: { enabled: true },
    agent: { config: { agent: { region: config.region } } },
    manager: { applicationSignals: { autoMonitor: { monitorAllServices: false } } },
  };
  const more = { serviceAccountRoleArn: role.arn, configurationValues: JSON.stringify(settings) };
  createAddon(name, "amazon-cloudwatch-observability", more, deps, [...groups, ...policies, ...logs]);
}
