import * as pulumi from "@pulumi/pulumi";

/**
 * Returns the name of a component of a program. Objects of Kubernetes and accounts of Google have their names from it,
 * and other characters would fail only when many resources exist.
 *
 * @throws RunError
 */
export function componentName(name: string): string {
  if (/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name)) return name;
  throw new pulumi.RunError(`the name of a component must be lower-case letters, digits and dashes, not ${name}`);
}
