import type { KubernetesApi } from "./api.ts";

/** What is asked whether a user may do it; in all namespaces when none is named. */
interface ResourceAttributes {
  readonly verb: string;
  readonly group?: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
}

/** Whether the API server would let a user do something, with the groups that a user of its kind has. */
export async function isAllowed(
  api: KubernetesApi,
  user: string,
  resourceAttributes: ResourceAttributes,
): Promise<boolean> {
  const groups = [
    ...(user.startsWith("system:serviceaccount:") ? ["system:serviceaccounts"] : []),
    "system:authenticated",
  ];
  const review = await api.create({
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    spec: { user, groups, resourceAttributes },
  });
  return review.status.allowed;
}
