import type * as pulumi from "@pulumi/pulumi";
import { userOfAccount } from "@tiltyard/platform";
import { createAdmissionPolicy, isUser } from "../admission-policy.ts";
import { createGrantedRole } from "../granted-role.ts";

/** The rights of pods of a Ray cluster: they watch its pods, and scale and delete the cluster. */
const rules = [
  { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["get", "patch", "delete"] },
];

interface Account {
  readonly namespace: string;
  readonly serviceAccount: string;
}

/**
 * Grants the rights in the whole cluster under the names that Geneva expects. A pod that changes a Ray cluster determines
 * what its pods execute, so the API server refuses changes in other namespaces.
 */
export function createClusterRole(name: string, account: Account, options: pulumi.CustomResourceOptions): void {
  const { namespace, serviceAccount } = account;
  const policy = createAdmissionPolicy(
    `${name}-own-clusters`,
    {
      policyName: `tiltyard-ray-own-clusters-${namespace}`,
      rule: {
        ...{ apiGroups: ["ray.io"], apiVersions: ["*"], resources: ["rayclusters"] },
        operations: ["UPDATE", "DELETE"],
      },
      condition: isUser(userOfAccount(namespace, serviceAccount)),
      validations: [
        {
          expression: `request.namespace == '${namespace}'`,
          message: `Pods of Ray in ${namespace} may only change and delete Ray clusters there`,
        },
      ],
    },
    options,
  );
  createGrantedRole(name, roleOf(account), { ...options, dependsOn: [...policy] });
}

/** Grants the rights in one namespace, so that jobs of a team cannot access the Ray clusters of another. */
export function createRoleInNamespace(name: string, account: Account, options: pulumi.CustomResourceOptions): void {
  createGrantedRole(name, { ...roleOf(account), namespace: account.namespace }, options);
}

function roleOf({ namespace, serviceAccount }: Account) {
  const subject = { kind: "ServiceAccount", name: serviceAccount, namespace } as const;
  return { name: `${serviceAccount}-role`, bindingName: `${serviceAccount}-binding`, rules, subjects: [subject] };
}
