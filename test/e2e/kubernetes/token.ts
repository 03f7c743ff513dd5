import type { KubernetesApi, KubernetesObject } from "./api.ts";

const seconds = 86_400;

/** Returns a token of a service account, with which a process signs in like a pod. */
export async function tokenOf(api: KubernetesApi, namespace: string, serviceAccount: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`;
  const request = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { expirationSeconds: seconds },
  };
  const { status }: KubernetesObject = await api.request("POST", path, request);
  return status.token;
}
