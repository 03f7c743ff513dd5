/** The node groups that a stack requests from a cloud, each with the nodes that the cloud creates for it. */
import { z } from "zod";
import type { NodeSettings, Taint } from "../kubernetes/nodes.ts";
import { nameOf } from "../providers/record.ts";
import type { DeployedStack } from "../stack.ts";

export interface NodeGroup {
  /** The name of the resource in the program, such as `eks-cpu`. */
  readonly resource: string;
  /** The name of the group for an autoscaler. */
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly node: Omit<NodeSettings, "name">;
}

/** The settings of a stack for its cluster autoscaler, in addition to the groups. */
export interface AutoscalerSettings {
  readonly flags: readonly string[];
  /** The priorities for its expander `priority`. */
  readonly priorities: Readonly<Record<string, readonly string[]>>;
}

/** The resources of machines, from the clouds' own lists. */
const machines: Readonly<Record<string, Pick<NodeSettings, "cpu" | "memory" | "gpus">>> = {
  "m7i.xlarge": { cpu: "4", memory: "16Gi" },
  "m7i.2xlarge": { cpu: "8", memory: "32Gi" },
  "m7i.4xlarge": { cpu: "16", memory: "64Gi" },
  "g6.4xlarge": { cpu: "16", memory: "64Gi", gpus: 1 },
  "e2-standard-4": { cpu: "4", memory: "16Gi" },
  "n2-standard-8": { cpu: "8", memory: "32Gi" },
  "n2-standard-16": { cpu: "16", memory: "64Gi" },
  "g2-standard-16": { cpu: "16", memory: "64Gi", gpus: 1 },
};

const effects = { NO_SCHEDULE: "NoSchedule", NO_EXECUTE: "NoExecute", PREFER_NO_SCHEDULE: "PreferNoSchedule" } as const;

const CloudTaint = z
  .object({
    key: z.string(),
    value: z.string().optional(),
    effect: z.enum(["NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE"]),
  })
  .transform(({ effect, ...taint }): Taint => ({ ...taint, effect: effects[effect] }));
const some = <Item extends z.ZodType>(item: Item) => z.tuple([item], item);
const described = { labels: z.record(z.string(), z.string()), taints: z.array(CloudTaint).default([]) };

const EksNodeGroup = z.object({
  inputs: z.object({ ...described, instanceTypes: some(z.string()), capacityType: z.string() }),
  outputs: z.object({
    resources: some(z.object({ autoscalingGroups: some(z.object({ name: z.string() })) })),
  }),
});

const GkeNodePool = z.object({
  inputs: z.object({
    autoscaling: z.object({ totalMinNodeCount: z.number(), totalMaxNodeCount: z.number() }),
    nodeConfig: z.object({ ...described, machineType: z.string(), spot: z.boolean() }),
  }),
});

/** The release of the autoscaler's chart. */
const AutoscalerRelease = z.object({
  inputs: z.object({
    values: z.object({
      autoscalingGroups: z.array(z.object({ name: z.string(), minSize: z.number(), maxSize: z.number() })),
      extraArgs: z.record(z.string(), z.union([z.string(), z.boolean()])),
      expanderPriorities: z.record(z.string(), z.array(z.string())),
    }),
  }),
});

const State = z.object({
  checkpoint: z.object({
    latest: z.object({ resources: z.array(z.looseObject({ type: z.string(), urn: z.string() })) }),
  }),
});

/** The taint that GKE sets on every node with a GPU. */
const gkeGpuTaint: Taint = { key: "nvidia.com/gpu", value: "present", effect: "NoSchedule" };

/** Returns the groups in the state of a deployed stack. */
export function nodeGroupsOf(stack: DeployedStack): NodeGroup[] {
  return [
    ...resourcesOf(stack, "aws:eks/nodeGroup:NodeGroup").map((each) => eksGroup(each, releaseOf(stack))),
    ...resourcesOf(stack, "gcp:container/nodePool:NodePool").map(gkeGroup),
  ];
}

/** Returns the settings of the autoscaler; none for a cloud that has its own. */
export function autoscalerSettingsOf(stack: DeployedStack): AutoscalerSettings {
  const release = releaseOf(stack);
  if (release === undefined) return { flags: [], priorities: {} };
  const flags = Object.entries(release.extraArgs).map(([name, value]) => `--${name}=${value}`);
  return { flags, priorities: release.expanderPriorities };
}

type Resource = z.infer<typeof State>["checkpoint"]["latest"]["resources"][number];

function resourcesOf(stack: DeployedStack, type: string): Resource[] {
  return State.parse(JSON.parse(stack.state)).checkpoint.latest.resources.filter((each) => each.type === type);
}

function releaseOf(stack: DeployedStack) {
  const [release] = resourcesOf(stack, "kubernetes:helm.sh/v3:Release").filter(({ urn }) =>
    nameOf(urn).endsWith("autoscaler"),
  );
  return release && AutoscalerRelease.parse(release).inputs.values;
}

/** Returns a group of EKS. Only the autoscaler knows its limits. */
function eksGroup(resource: Resource, release: ReturnType<typeof releaseOf>): NodeGroup {
  const { inputs, outputs } = EksNodeGroup.parse(resource);
  const { labels, taints, instanceTypes, capacityType } = inputs;
  const [{ name }] = outputs.resources[0].autoscalingGroups;
  const limits = release?.autoscalingGroups.find((each) => each.name === name);
  if (limits === undefined) throw new Error(`the autoscaler does not know ${name}`);
  return {
    resource: nameOf(resource.urn),
    name,
    min: limits.minSize,
    max: limits.maxSize,
    node: { ...machineOf(instanceTypes[0]), labels, taints, spot: capacityType === "SPOT" },
  };
}

function gkeGroup(resource: Resource): NodeGroup {
  const { autoscaling, nodeConfig } = GkeNodePool.parse(resource).inputs;
  const { labels, taints, machineType, spot } = nodeConfig;
  const machine = machineOf(machineType);
  const others = taints.filter(({ key }) => key !== gkeGpuTaint.key);
  return {
    resource: nameOf(resource.urn),
    name: nameOf(resource.urn),
    min: autoscaling.totalMinNodeCount,
    max: autoscaling.totalMaxNodeCount,
    node: { ...machine, labels, taints: machine.gpus === undefined ? taints : [...others, gkeGpuTaint], spot },
  };
}

function machineOf(type: string) {
  const machine = machines[type];
  if (machine === undefined) throw new Error(`${type}: write down in node-groups.ts what this machine has`);
  return machine;
}
