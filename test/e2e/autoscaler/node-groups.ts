/** The node groups that a stack asks a cloud for, each with the nodes that the cloud makes for it. */
import { z } from "zod";
import type { NodeSettings, Taint } from "../kubernetes/nodes.ts";
import { nameOf } from "../providers/record.ts";
import type { DeployedStack } from "../stack.ts";

export interface NodeGroup {
  /** The resource's name in the program, `eks-head`. */
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly node: Omit<NodeSettings, "name">;
}

/** What a machine has, from the clouds' own lists of them. */
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
const described = { labels: z.record(z.string(), z.string()), taints: z.array(CloudTaint).default([]) };

/** GKE puts it on every node with a GPU. */
const gkeGpuTaint: Taint = { key: "nvidia.com/gpu", value: "present", effect: "NoSchedule" };

type Group = Omit<NodeGroup, "name">;

/** How the resources of both clouds say what their nodes are like. */
const groups = {
  "aws:eks/nodeGroup:NodeGroup": z
    .object({
      ...described,
      instanceTypes: z.tuple([z.string()], z.string()),
      capacityType: z.string().optional(),
      scalingConfig: z.object({ minSize: z.number(), maxSize: z.number() }),
    })
    .transform(
      ({ labels, taints, instanceTypes: [machine], capacityType, scalingConfig }): Group => ({
        min: scalingConfig.minSize,
        max: scalingConfig.maxSize,
        node: { ...machineOf(machine), labels, taints, spot: capacityType === "SPOT" },
      }),
    ),
  "gcp:container/nodePool:NodePool": z
    .object({
      autoscaling: z.object({ totalMinNodeCount: z.number(), totalMaxNodeCount: z.number() }),
      nodeConfig: z.object({ ...described, machineType: z.string(), spot: z.boolean().optional() }),
    })
    .transform(({ autoscaling, nodeConfig: { labels, taints, machineType, spot } }): Group => {
      const machine = machineOf(machineType);
      const others = taints.filter(({ key }) => key !== gkeGpuTaint.key);
      return {
        min: autoscaling.totalMinNodeCount,
        max: autoscaling.totalMaxNodeCount,
        node: { ...machine, labels, taints: machine.gpus === undefined ? taints : [...others, gkeGpuTaint], spot },
      };
    }),
} as const;

const State = z.object({
  checkpoint: z.object({
    latest: z.object({
      resources: z.array(z.object({ type: z.string(), urn: z.string(), inputs: z.unknown().optional() })),
    }),
  }),
});

/** The groups as they are in the state of a stack that is up. */
export function nodeGroupsOf(stack: DeployedStack): NodeGroup[] {
  const { resources } = State.parse(JSON.parse(stack.state)).checkpoint.latest;
  return resources.flatMap(({ type, urn, inputs }) =>
    isGroup(type) ? [{ name: nameOf(urn), ...groups[type].parse(inputs) }] : [],
  );
}

function isGroup(type: string): type is keyof typeof groups {
  return type in groups;
}

function machineOf(type: string) {
  const machine = machines[type];
  if (machine === undefined) throw new Error(`${type}: write down in node-groups.ts what this machine has`);
  return machine;
}
