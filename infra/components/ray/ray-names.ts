/** Returns the priority classes of a platform. Pods of a higher class preempt those of a lower one. */
export function priorityClasses(namespace: string) {
  return { control: `tiltyard-control-${namespace}`, head: `tiltyard-ray-head-${namespace}` };
}
