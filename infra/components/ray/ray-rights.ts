import type * as pulumi from "@pulumi/pulumi";
import { createGrantedRole } from "../granted-role.ts";

/** Pods of a Ray cluster watch its pods, and scale and delete the cluster; requirements.md 2.7. */
const rules = [
  { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["get", "patch", "delete"] },
];

interface Account {
  readonly namespace: string;
  readonly serviceAccount: string;
}

/** Grants the rights in the whole cluster, under the names that requirements.md 2.7 prescribes. */
export function createClusterRole(name: string, account: Account, options: pulumi.CustomResourceOptions): void {
  createGrantedRole(name, roleOf(account), options);
}

/** Grants the rights in one namespace: jobs of a team cannot reach the Ray clusters of another. */
export function createRoleInNamespace(name: string, account: Account, options: pulumi.CustomResourceOptions): void {
  createGrantedRole(name, { ...roleOf(account), namespace: account.namespace }, options);
}

function roleOf({ namespace, serviceAccount }: Account) {
  const subject = { kind: "ServiceAccount", name: serviceAccount, namespace } as const;
  return { name: `${serviceAccount}-role`, bindingName: `${serviceAccount}-binding`, rules, subjects: [subject] };
}
