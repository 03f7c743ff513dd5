import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";

/** The prefix of the names of classes of controllers. */
export const controlClassPrefix = "tiltyard-control-";

/** Returns the names of a platform's priority classes. Pods of a higher class preempt those of a lower one. */
export function priorityClasses(namespace: string) {
  return { control: `${controlClassPrefix}${namespace}`, head: `tiltyard-ray-head-${namespace}` };
}

/** Creates the priority classes. They are cluster-wide, and other stacks in other namespaces may have their own. */
export function createPriorityClasses(
  name: string,
  namespace: string,
  options: pulumi.CustomResourceOptions,
): readonly pulumi.Resource[] {
  const { control, head } = priorityClasses(namespace);
  const classes = [
    ["control", control, 1_000_000, "The operator and the catalog: nothing works without them."],
    ["head", head, 100_000, "Ray heads: losing one ends its whole cluster."],
  ] as const;
  return classes.map(
    ([role, className, value, description]) =>
      new kubernetes.scheduling.v1.PriorityClass(
        `${name}-${role}`,
        { metadata: { name: className }, value, description },
        options,
      ),
  );
}
