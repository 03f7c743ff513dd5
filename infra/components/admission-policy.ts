import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";

type Rule = kubernetes.types.input.admissionregistration.v1.NamedRuleWithOperations;

/** A condition in CEL that the requests must meet, and the message of a refusal. */
interface Validation {
  readonly expression: string;
  readonly message: string;
}

export interface AdmissionPolicyArgs {
  /** The name of the policy, which belongs to no namespace. */
  readonly policyName: string;
  /** The namespaces in which it applies; all when absent. */
  readonly namespaces?: readonly string[];
  /** The requests to which it applies. */
  readonly rule: Rule;
  /** The condition in CEL of the requests that it restricts; all requests when absent. */
  readonly condition?: string;
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  readonly validations: readonly Validation[];
}

/** Returns the condition of the requests of one user. */
export function isUser(user: string): string {
  return `request.userInfo.username == '${user}'`;
}

/**
 * Creates a policy by which the API server itself refuses requests that roles cannot distinguish. It needs Kubernetes
 * 1.30.
 *
 * @returns The policy and its binding.
 */
export function createAdmissionPolicy(
  name: string,
  { policyName, namespaces, rule, condition, variables = [], validations }: AdmissionPolicyArgs,
  options: pulumi.CustomResourceOptions,
): readonly pulumi.Resource[] {
  const { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } = kubernetes.admissionregistration.v1;
  const metadata = { name: policyName };
  const policy = new ValidatingAdmissionPolicy(
    name,
    {
      metadata,
      spec: {
        failurePolicy: "Fail",
        matchConstraints: { resourceRules: [rule] },
        ...(condition !== undefined && { matchConditions: [{ name: "restricted", expression: condition }] }),
        variables: [...variables],
        validations: [...validations],
      },
    },
    options,
  );
  const binding = new ValidatingAdmissionPolicyBinding(
    name,
    {
      metadata,
      spec: {
        policyName: policy.metadata.name,
        validationActions: ["Deny"],
        ...(namespaces !== undefined && {
          matchResources: {
            namespaceSelector: {
              matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In", values: [...namespaces] }],
            },
          },
        }),
      },
    },
    options,
  );
  return [policy, binding];
}
