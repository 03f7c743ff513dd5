/** Priority classes of a platform; pods of a lower one make room for those of a higher one. */
export function priorityClasses(namespace: string) {
  return { control: `tiltyard-control-${namespace}`, head: `tiltyard-ray-head-${namespace}` };
}
