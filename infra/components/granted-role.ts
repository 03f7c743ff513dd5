import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { ClusterSubject, ServiceAccountName } from "../cluster.ts";

export interface GrantedRoleArgs {
  readonly name: string;
  /** The name of the role's binding; that of the role when absent. */
  readonly bindingName?: string;
  /** The namespace of the role; the whole cluster when absent. */
  readonly namespace?: string;
  readonly rules: readonly Rule[];
  readonly subjects: readonly (ClusterSubject | ServiceAccountSubject)[];
}

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

type ServiceAccountSubject = ServiceAccountName & { readonly kind: "ServiceAccount" };

const apiGroup = "rbac.authorization.k8s.io";

/** Creates a role and the binding that grants it; nothing without subjects. */
export function createGrantedRole(
  name: string,
  { name: roleName, bindingName = roleName, namespace, rules, subjects: grantees }: GrantedRoleArgs,
  options: pulumi.CustomResourceOptions,
): void {
  if (grantees.length === 0) return;
  const { Role, RoleBinding, ClusterRole, ClusterRoleBinding } = kubernetes.rbac.v1;
  const subjects = grantees.map((each) => (each.kind === "ServiceAccount" ? each : { ...each, apiGroup }));
  const role = {
    metadata: { name: roleName, ...(namespace !== undefined && { namespace }) },
    rules: rules.map(toRule),
  };
  const metadata = { ...role.metadata, name: bindingName };
  if (namespace === undefined) {
    const roleRef = { apiGroup, kind: "ClusterRole", name: new ClusterRole(name, role, options).metadata.name };
    new ClusterRoleBinding(name, { metadata, roleRef, subjects }, options);
  } else {
    const roleRef = { apiGroup, kind: "Role", name: new Role(name, role, options).metadata.name };
    new RoleBinding(name, { metadata, roleRef, subjects }, options);
  }
}

/** Copies the lists, because Pulumi's types do not accept readonly ones. */
function toRule({ apiGroups, resources, resourceNames, verbs }: Rule) {
  return {
    apiGroups: [...apiGroups],
    resources: [...resources],
    ...(resourceNames !== undefined && { resourceNames: [...resourceNames] }),
    verbs: [...verbs],
  };
}
