import { ownValue } from "@tiltyard/protocol";
import { z } from "zod";
import { isMap } from "./setting-types.ts";

export type ChartValues = Readonly<Record<string, unknown>>;

/** The chart values that only the stack may set, by path, with the reason. */
const kept = {
  kuberayOperator: {
    watchNamespace: "the operator has rights in the namespaces of the stack alone",
    singleNamespaceInstall: "the operator has rights in the namespaces of the stack alone",
    nameOverride: "network policies know its pods by this name",
    configuration: "a file would replace the arguments, by which other stacks know the namespaces of the operator",
  },
  kueue: {},
  clusterAutoscaler: {
    autoscalingGroups: "these are the node pools of the stack; change min and max there",
    autoDiscovery: "it would find groups with the limits of EKS instead of those of nodePools",
    cloudProvider: "the stack is on AWS",
    awsRegion: "the stack sets it",
    "image.tag": "it depends on the version of Kubernetes",
    "rbac.serviceAccount": "its role in AWS is for that account",
    fullnameOverride: "its role in AWS is for that account",
    "extraArgs.enforce-node-group-min-size": "min of a pool would not hold",
  },
  nvidiaDevicePlugin: {},
} as const satisfies Record<string, Readonly<Record<string, string>>>;
type Chart = keyof typeof kept;

const valuesFor = (chart: Chart) =>
  z.record(z.string(), z.unknown()).superRefine((values, context) => {
    for (const [path, reason] of Object.entries(kept[chart]))
      if (has(values, path.split(".")))
        context.addIssue({ code: "custom", path: path.split("."), message: `must not be set: ${reason}` });
  });

const everywhere = { kuberayOperator: valuesFor("kuberayOperator").optional(), kueue: valuesFor("kueue").optional() };

/** The additional values of charts, by chart. */
export const ChartsEverywhere = z.strictObject(everywhere).prefault({});
export const ChartsOnEks = z
  .strictObject({
    ...everywhere,
    clusterAutoscaler: valuesFor("clusterAutoscaler").optional(),
    nvidiaDevicePlugin: valuesFor("nvidiaDevicePlugin").optional(),
  })
  .prefault({});
export type ChartValuesOf<Its extends string> = { readonly [chart in Its]?: ChartValues | undefined };

/** Merges additional values into those of the stack. Maps are merged; all other values are replaced. */
export function merged(own: ChartValues, more: ChartValues | undefined = {}): Record<string, unknown> {
  const both = Object.entries(more).map(([key, value]) => {
    const before = ownValue(own, key);
    return [key, isMap(before) && isMap(value) ? merged(before, value) : value] as const;
  });
  return { ...own, ...Object.fromEntries(both) };
}

function has(values: unknown, [key = "", ...rest]: readonly string[]): boolean {
  if (!isMap(values) || !Object.hasOwn(values, key)) return false;
  return rest.length === 0 || has(ownValue(values, key), rest);
}
