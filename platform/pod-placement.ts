import { z } from "zod";

/** The fields of a pod that choose its nodes, with the names and the rules of Kubernetes' own documentation. */

const text = z.string().min(1);
const texts = z.array(text);

const Toleration = z
  .strictObject({
    key: text.exactOptional(),
    operator: z.enum(["Exists", "Equal"]).default("Equal"),
    value: z.string().exactOptional(),
    effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]).exactOptional(),
    tolerationSeconds: z.int().nonnegative().exactOptional(),
  })
  .superRefine(({ key, operator, value, effect, tolerationSeconds }, context) => {
    const problem = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
    if (key === undefined && operator !== "Exists") problem("key", "is required unless operator is Exists");
    if (value !== undefined && operator === "Exists") problem("value", "must be absent with the operator Exists");
    if (tolerationSeconds !== undefined && effect !== "NoExecute")
      problem("tolerationSeconds", "needs the effect NoExecute");
  });

const requirement = <const Operators extends readonly string[]>(operators: Operators) =>
  z.array(z.strictObject({ key: text, operator: z.enum(operators), values: z.array(z.string()).exactOptional() }));
const ofLabels = ["In", "NotIn", "Exists", "DoesNotExist"] as const;

const LabelSelector = z.strictObject({
  matchLabels: z.record(z.string(), z.string()).exactOptional(),
  matchExpressions: requirement(ofLabels).exactOptional(),
});

const nodeRequirement = requirement([...ofLabels, "Gt", "Lt"]);
const NodeTerm = z.strictObject({
  matchExpressions: nodeRequirement.exactOptional(),
  matchFields: nodeRequirement.exactOptional(),
});
const PodTerm = z.strictObject({
  topologyKey: text,
  labelSelector: LabelSelector.exactOptional(),
  namespaces: texts.exactOptional(),
  namespaceSelector: LabelSelector.exactOptional(),
  matchLabelKeys: texts.exactOptional(),
  mismatchLabelKeys: texts.exactOptional(),
});
const weight = z.int().min(1).max(100);

const PodAffinity = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: z.array(PodTerm).exactOptional(),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(z.strictObject({ weight, podAffinityTerm: PodTerm }))
    .exactOptional(),
});

const Affinity = z.strictObject({
  nodeAffinity: z
    .strictObject({
      requiredDuringSchedulingIgnoredDuringExecution: z
        .strictObject({ nodeSelectorTerms: z.array(NodeTerm).min(1) })
        .exactOptional(),
      preferredDuringSchedulingIgnoredDuringExecution: z
        .array(z.strictObject({ weight, preference: NodeTerm }))
        .exactOptional(),
    })
    .exactOptional(),
  podAffinity: PodAffinity.exactOptional(),
  podAntiAffinity: PodAffinity.exactOptional(),
});

const TopologySpreadConstraint = z.strictObject({
  maxSkew: z.int().min(1),
  topologyKey: text,
  whenUnsatisfiable: z.enum(["DoNotSchedule", "ScheduleAnyway"]),
  minDomains: z.int().min(1).exactOptional(),
  nodeAffinityPolicy: z.enum(["Honor", "Ignore"]).exactOptional(),
  nodeTaintsPolicy: z.enum(["Honor", "Ignore"]).exactOptional(),
  labelSelector: LabelSelector.exactOptional(),
  matchLabelKeys: texts.exactOptional(),
});

/** The placement of the pods of a group. */
export const podPlacement = {
  /** The tolerations in addition to those for the nodes of the group's role. */
  tolerations: z.array(Toleration).default([]),
  affinity: Affinity.optional(),
  topologySpreadConstraints: z.array(TopologySpreadConstraint).default([]),
};
