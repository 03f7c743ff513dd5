import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";

const apiGroup = "rbac.authorization.k8s.io";

/** What pods of a Ray cluster do: watch its pods, and grow, shrink and end it; requirements.md 2.7. */
const rules = [
  { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["get", "patch", "delete"] },
];

interface Account {
  readonly namespace: string;
  readonly serviceAccount: string;
}

/** The rights that requirements.md 2.7 asks for, in the whole cluster, under the names that they must have. */
export function createClusterRole(
  name: string,
  { namespace, serviceAccount }: Account,
  options: pulumi.CustomResourceOptions,
): void {
  const role = new kubernetes.rbac.v1.ClusterRole(
    name,
    { metadata: { name: `${serviceAccount}-role` }, rules },
    options,
  );
  new kubernetes.rbac.v1.ClusterRoleBinding(
    name,
    {
      metadata: { name: `${serviceAccount}-binding` },
      roleRef: { apiGroup, kind: "ClusterRole", name: role.metadata.name },
      subjects: [{ kind: "ServiceAccount", name: serviceAccount, namespace }],
    },
    options,
  );
}

/** The same in one namespace: jobs of a team have nothing to do with the Ray clusters of another. */
export function createRoleInNamespace(
  name: string,
  { namespace, serviceAccount }: Account,
  options: pulumi.CustomResourceOptions,
): void {
  const role = new kubernetes.rbac.v1.Role(
    name,
    { metadata: { name: `${serviceAccount}-role`, namespace }, rules },
    options,
  );
  new kubernetes.rbac.v1.RoleBinding(
    name,
    {
      metadata: { name: `${serviceAccount}-binding`, namespace },
      roleRef: { apiGroup, kind: "Role", name: role.metadata.name },
      subjects: [{ kind: "ServiceAccount", name: serviceAccount, namespace }],
    },
    options,
  );
}
