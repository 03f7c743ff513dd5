import type { KubernetesApi } from "./api.ts";

/** An action to review; in all namespaces when none is specified. */
interface ResourceAttributes {
  readonly verb: string;
  readonly group?: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
}

/** Reports whether the API server would allow an action of a user with the groups of its kind. */
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
